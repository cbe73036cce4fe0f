// Tests effects on vectors against the formulas of actor.h, for any content of the vectors.
#include "framework/exchange/effect_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

const ArenaLayout kThree{{{"w", {3}, {0, 3}, true}}};
constexpr VectorId kLeft = 0, kRight = 1;

class TwoVectors : public Actor {
 public:
  std::vector<VectorSpec> Vectors() const override {
    return {{"a", VectorRole::kPlain, {0, 3}}, {"b", VectorRole::kPlain, {0, 3}}};
  }
  void Visit(StateVisitor&) override {}
  std::string Describe() const override { return "two vectors"; }
};

class EffectQueueTest : public ::testing::Test {
 protected:
  EffectQueueTest() { spec_.solver = MakeSolver("{name: sgd}"); }

  void Set(VectorId vector, std::vector<float> values) {
    std::copy(values.begin(), values.end(), host_.vectors.Overwrite(vector));
  }
  // Returns the content of `to` after the effect.
  std::vector<float> After(Effect effect, VectorId to) {
    queue_.Push(host_, std::move(effect), std::nullopt);
    while (queue_.RunSlice()) {
    }
    const float* const values = host_.vectors.Get(to).blob.f32();
    return {values, values + 3};
  }

  ExchangeSpec spec_{.layout = &kThree};
  BlobPools pools_;
  HostedActor host_{7, std::make_unique<TwoVectors>(), spec_, 0, &pools_};
  const std::unique_ptr<VectorOps> ops_ = MakeCpuVectorOps();
  EffectQueue queue_{spec_, *ops_, 1, nullptr};
};

TEST_F(EffectQueueTest, AddTimesAFactor) {
  Set(kLeft, {1, 2, 3});
  Set(kRight, {10, 20, 30});
  EXPECT_THAT(After(AddEffect{kLeft, kRight, 1}, kLeft), ElementsAre(11, 22, 33));
  EXPECT_THAT(After(AddEffect{kLeft, kRight, 0.5}, kLeft), ElementsAre(16, 32, 48));
  EXPECT_THAT(After(AddEffect{kLeft, kRight, -1}, kLeft), ElementsAre(6, 12, 18));
}

TEST_F(EffectQueueTest, AnEmptyVectorCountsAsZeros) {
  Set(kRight, {10, 20, 30});
  EXPECT_THAT(After(AddEffect{kLeft, kRight, 0.5}, kLeft), ElementsAre(5, 10, 15));
  host_.vectors.Clear(kRight);
  EXPECT_THAT(After(AddEffect{kLeft, kRight, 1}, kLeft), ElementsAre(5, 10, 15));
  host_.vectors.Clear(kLeft);
  Set(kRight, {1, 2, 3});
  EXPECT_THAT(After(AddEffect{kLeft, kRight, 1}, kLeft), ElementsAre(1, 2, 3));
}

TEST_F(EffectQueueTest, BlendKeepsTheRest) {
  Set(kLeft, {1, 2, 3});
  Set(kRight, {9, 10, 11});
  EXPECT_THAT(After(BlendEffect{kLeft, kRight, 0.25}, kLeft), ElementsAre(3, 4, 5));
  EXPECT_THAT(After(BlendEffect{kLeft, kRight, 1}, kLeft), ElementsAre(9, 10, 11));
  EXPECT_THAT(After(BlendEffect{kRight, kLeft, 0}, kRight), ElementsAre(9, 10, 11));
}

TEST_F(EffectQueueTest, TakeLeavesTheSourceEmpty) {
  Set(kLeft, {1, 2, 3});
  EXPECT_THAT(After(TakeEffect{kRight, kLeft}, kRight), ElementsAre(1, 2, 3));
  EXPECT_THAT(After(ClearEffect{kRight}, kRight), ElementsAre(0, 0, 0));
  EXPECT_THAT(After(AddEffect{kRight, kLeft, 1}, kRight), ElementsAre(0, 0, 0));
}

// Three parameters with master weights; the middle one is frozen.
class AMaster : public TwoVectors {
 public:
  std::vector<VectorSpec> Vectors() const override {
    return {{"a", VectorRole::kMaster, {0, 6}}, {"b", VectorRole::kPlain, {0, 6}}};
  }
};

// In floats (1 - 1/3) a + 1/3 a differs from a by rounding, and -0 + +0 is +0.
TEST(BlendOfMasters, LeavesWhatIsFrozen) {
  ArenaLayout layout{{{"w", {2}, {0, 2}}, {"frozen", {3}, {2, 5}}, {"b", {1}, {5, 6}}}};
  layout.entries[1].lr_factor = 0;
  ExchangeSpec spec{.layout = &layout};
  spec.solver = MakeSolver("{name: sgd}");
  BlobPools pools;
  HostedActor host(7, std::make_unique<AMaster>(), spec, 0, &pools);
  const auto ops = MakeCpuVectorOps();
  EffectQueue queue(spec, *ops, 1, nullptr);
  const std::vector<float> before = {3, 3, 0.1f, -0.0f, 1e-45f, 3},
                           other = {6, 6, 0.1f, -0.0f, 1e-45f, 6};
  for (const bool shared : {false, true}) {  // true: another thread still reads the old version
    std::copy(before.begin(), before.end(), host.vectors.Overwrite(kLeft));
    std::copy(other.begin(), other.end(), host.vectors.Overwrite(kRight));
    const VectorSlice reader = shared ? host.vectors.Get(kLeft) : VectorSlice{};
    queue.Push(host, BlendEffect{kLeft, kRight, 1.0 / 3}, std::nullopt);
    while (queue.RunSlice()) {
    }
    const float* const after = host.vectors.Get(kLeft).blob.f32();
    EXPECT_EQ(std::memcmp(after + 2, before.data() + 2, 3 * sizeof(float)), 0);
    for (const int i : {0, 1, 5}) EXPECT_FLOAT_EQ(after[i], 4);
  }
}

}  // namespace
}  // namespace dtrain
