// Tests Compress, and the other effects on its sparse result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "framework/core/random.h"
#include "framework/exchange/effect_queue.h"
#include "tests/support/compressors.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// Larger than one slice of work; the borders of layers are not those of slices.
constexpr int64_t kN = 600'000;
const ArenaLayout kSparseLayout{{{"a", {100}, {0, 100}, true},
                                 {"b", {399'900}, {100, 400'000}, false},
                                 {"c", {200'000}, {400'000, kN}, true}}};
constexpr VectorId kMaster = 0, kA = 1, kB = 2, kC = 3, kHalf = 4;

class FiveVectors : public Actor {
 public:
  std::vector<VectorSpec> Vectors() const override {
    const Range all{0, kN};
    return {{"master", VectorRole::kMaster, all},
            {"a", VectorRole::kPlain, all},
            {"b", VectorRole::kPlain, all},
            {"c", VectorRole::kPlain, all},
            {"half", VectorRole::kPlain, {0, kN / 2}}};
  }
  void Visit(StateVisitor&) override {}
  std::string Describe() const override { return "vectors"; }
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

std::vector<float> Values(const VectorSlice& slice) {
  if (!slice.sparse()) {
    return {slice.At(slice.range.begin), slice.At(slice.range.begin) + slice.range.size()};
  }
  std::vector<float> values(static_cast<size_t>(slice.range.size()));
  for (int64_t i = 0; i < slice.entries; ++i) {
    values[slice.positions()[i] - slice.range.begin] = slice.values()[i];
  }
  return values;
}

// Normally distributed values, with zeros of both signs.
std::vector<float> Normal(uint64_t stream) {
  const Random random(2, Purpose::kSelfTest, stream);
  std::vector<float> values;
  for (uint64_t i = 0; i < static_cast<uint64_t>(kN); ++i) {
    values.push_back(i % 7 == 0 ? 0.0f : i % 7 == 1 ? -0.0f : random.Normal(i));
  }
  return values;
}

ExchangeSpec SpecWith(const std::string& compress, bool ghost) {
  ExchangeSpec spec{.layout = &kSparseLayout};
  spec.solver = MakeSolver("{name: sgd, lr: 0.1, momentum: 0.9}");
  spec.layer_gradients = {{{0, 100}, {100, 400'000}, {400'000, kN}}};
  spec.actors.buckets = {{0, kN}};
  spec.actors.compress = MakeCompress(compress);
  spec.rule = {.epoch_samples = 1000, .batch = 10, .last_samples = 1000};
  spec.ghost = ghost;
  return spec;
}

struct Host {
  explicit Host(const std::string& compress, bool ghost = false)
      : spec(SpecWith(compress, ghost)),
        actor(7, std::make_unique<FiveVectors>(), spec, 0, ghost ? nullptr : &pools) {}

  void Set(VectorId vector, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), actor.vectors.Overwrite(vector));
  }
  void Do(Effect effect, std::optional<VectorSlice> arrived = {}) {
    queue.Push(actor, std::move(effect), arrived);
    while (queue.RunSlice()) {
    }
  }
  VectorSlice Send(VectorId vector, Range range = {}) {
    Do(SendEffect{0, {}, {vector, range}});
    return sent.back();
  }
  VectorSlice Get(VectorId vector) { return actor.vectors.Get(vector); }

  const ExchangeSpec spec;
  BlobPools pools;
  HostedActor actor;
  const std::unique_ptr<VectorOps> ops = MakeCpuVectorOps();
  std::vector<VectorSlice> sent;
  EffectQueue queue{spec, *ops, 1,
                    [this](HostedActor&, SendEffect&, std::optional<VectorSlice> slice) {
                      sent.push_back(*slice);
                    }};
};

class EveryCompressor : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryCompressor, SentAndKeptAreWhatWasAccumulatedToTheBit) {
  for (const char* scope : {"layer", "bucket", "model"}) {
    for (const double density : {0.001, 0.3, 1.0}) {
      Host host("{name: " + GetParam() + ", scope: " + scope + "}");
      const std::vector<float> all = Normal(1);
      host.Set(kA, all);
      host.Do(CompressEffect{kB, kA, density});
      const VectorSlice out = host.Get(kB);
      const std::vector<float> sent = Values(out), kept = Values(host.Get(kA));
      for (int64_t i = 0; i < kN; ++i) {
        const bool moved = sent[i] != 0;
        const float whole = moved ? sent[i] : density < 1 ? kept[i] : sent[i];
        ASSERT_EQ(std::bit_cast<uint32_t>(whole), std::bit_cast<uint32_t>(all[i])) << i;
        ASSERT_TRUE(!moved || std::bit_cast<uint32_t>(kept[i]) == 0) << i;
      }
      EXPECT_EQ(out.sparse(), density < 1);
      if (out.sparse()) {
        EXPECT_GT(out.entries, 0);
        EXPECT_TRUE(
            std::is_sorted(out.positions(), out.positions() + out.entries, std::less_equal<>()));
        EXPECT_EQ(host.queue.done().compression.entries_sent, out.entries);
      }
      EXPECT_EQ(host.queue.done().compression.entries, kN);
      EXPECT_TRUE(host.queue.done().finite);
    }
  }
}

TEST_P(EveryCompressor, TheSameStateChoosesTheSame) {
  Host one("{name: " + GetParam() + "}"), two("{name: " + GetParam() + "}");
  for (int call = 0; call < 2; ++call) {
    std::vector<float> values[2];
    for (Host* host : {&one, &two}) {
      host->Set(kA, Normal(4));
      host->Do(CompressEffect{kB, kA, 0.01});
      values[host == &two] = Values(host->Get(kB));
    }
    EXPECT_EQ(BitsOf(values[0]), BitsOf(values[1]));
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryCompressor,
                         ::testing::ValuesIn(CompressorNames(/*casts=*/false)),
                         [](const auto& info) { return info.param; });

// The selections are about equally large: each has a threshold from another sample.
TEST(Compress, EachSelectionOfARandomSelectorDrawsOtherLots) {
  Host host("gdtopk");
  std::vector<std::vector<uint32_t>> chosen;
  for (int call = 0; call < 3; ++call) {
    host.Set(kA, Normal(4));
    host.Do(CompressEffect{kB, kA, 0.01});
    chosen.push_back(BitsOf(Values(host.Get(kB))));
  }
  EXPECT_NE(chosen[0], chosen[1]);
  EXPECT_NE(chosen[1], chosen[2]);
}

TEST(Compress, ScopesChooseWithinTheirUnits) {
  // The first layer has the smallest values; compressed by itself it still sends some.
  std::vector<float> values = Normal(3);
  for (int i = 0; i < 100; ++i) values[i] = 1e-3f;
  for (const auto& [scope, sent_there] : {std::pair{"layer", 10}, {"bucket", 0}, {"model", 0}}) {
    Host host(std::string("{name: topk, scope: ") + scope + "}");
    host.Set(kA, values);
    host.Do(CompressEffect{kB, kA, 0.1});
    EXPECT_EQ(host.Get(kB).Part({0, 100}).entries, sent_there) << scope;
    EXPECT_EQ(host.Get(kB).entries, kN / 10) << scope;
  }
}

TEST(Compress, SomebodysVersionOfTheResidualStaysAsItWas) {
  Host host("topk");
  const std::vector<float> all = Normal(1);
  host.Set(kA, all);
  const VectorSlice held = host.Get(kA);
  host.Do(CompressEffect{kB, kA, 0.01});
  EXPECT_EQ(BitsOf(Values(held)), BitsOf(all));
  EXPECT_NE(BitsOf(Values(host.Get(kA))), BitsOf(all));
}

TEST(Compress, ZerosSendNothing) {
  Host host("topk");
  host.Do(CompressEffect{kB, kA, 0.01});  // compresses an empty vector
  EXPECT_EQ(host.Get(kB).entries, 0);
  EXPECT_EQ(host.Send(kB, {0, 10}).bytes(), 0);
  host.Set(kA, std::vector<float>(kN, 0.0f));
  host.Do(CompressEffect{kB, kA, 0.01});
  EXPECT_EQ(host.Get(kB).entries, 0);
  EXPECT_EQ(BitsOf(Values(host.Get(kB))), std::vector<uint32_t>(kN, 0));
}

TEST(Compress, WithoutACompressorEverythingCanBeMoved) {
  Host host("none");
  const std::vector<float> all = Normal(1);
  host.Set(kA, all);
  host.Do(CompressEffect{kB, kA, 1});
  EXPECT_EQ(BitsOf(Values(host.Get(kB))), BitsOf(all));
  EXPECT_EQ(Values(host.Get(kA)), std::vector<float>(kN));
}

// Selects the first entry of each unit.
class First : public Compressor {
 public:
  class Choice : public Selection {
    bool WantsLook() override { return false; }
    void Look(const float*, Range) override {}
    int64_t Choose(const float*, Range part, int32_t* chosen) override {
      chosen[0] = 0;
      return part.begin == 0 ? 1 : 0;
    }
  };
  void Configure(config::Reader&, CompressConfig&) override {}
  std::unique_ptr<Selection> Select(int64_t, double, const SelectionKey&) const override {
    return std::make_unique<Choice>();
  }
  int64_t EntriesMost(int64_t, double) const override { return 1; }
  int passes() const override { return 1; }
};

TEST(Compress, WhatIsNotFiniteIsSeenEvenWhereItIsNotPicked) {
  for (const double density : {0.5, 1.0}) {
    for (const float bad : {NAN, INFINITY, -INFINITY, 1e38f}) {
      Host host("topk");
      const_cast<ExchangeSpec&>(host.spec).actors.compress.compressor = std::make_shared<First>();
      std::vector<float> values = Normal(1);
      values[kN - 1] = bad;
      host.Set(kA, values);
      host.Do(CompressEffect{kB, kA, density});
      EXPECT_EQ(host.queue.done().finite, std::isfinite(bad)) << bad;
    }
  }
}

// --- the other effects on a sparse vector

class SparseSourceTest : public ::testing::Test {
 protected:
  SparseSourceTest() {
    host_.Set(kA, Normal(1));
    host_.Do(CompressEffect{kB, kA, 0.05});
    out_ = Values(host_.Get(kB));
  }
  Host host_{"topk"};
  std::vector<float> out_;  // the content of kB
};

TEST_F(SparseSourceTest, AddScattersIntoADenseVector) {
  const std::vector<float> before = Normal(9);
  for (const double factor : {1.0, 0.5}) {
    host_.Set(kC, before);
    const VectorSlice held =
        factor == 1 ? VectorSlice() : host_.Get(kC);  // in place, or as a new version
    host_.Do(AddEffect{kC, kB, factor});
    const std::vector<float> sum = Values(host_.Get(kC));
    for (int64_t i = 0; i < kN; ++i) {
      ASSERT_EQ(sum[i], before[i] + static_cast<float>(factor) * out_[i]) << i;
    }
  }
}

TEST_F(SparseSourceTest, ASumOfSparseOnesIsSparseWhileThatIsSmaller) {
  host_.Do(AddEffect{kC, kB, 1});
  EXPECT_EQ(host_.Get(kC).entries, kN / 20);
  EXPECT_EQ(BitsOf(Values(host_.Get(kC))), BitsOf(out_));
  std::vector<float> expected = out_;
  for (int more = 0; more < 8; ++more) {
    const VectorSlice before = host_.Get(kC);
    host_.Set(kA, Normal(20 + static_cast<uint64_t>(more)));
    host_.Do(CompressEffect{kB, kA, 0.1});
    const std::vector<float> added = Values(host_.Get(kB));
    host_.Do(AddEffect{kC, kB, 0.5});
    for (int64_t i = 0; i < kN; ++i) {
      if (added[i] != 0) expected[i] += 0.5f * added[i];
    }
    ASSERT_EQ(BitsOf(Values(host_.Get(kC))), BitsOf(expected)) << more;
    const bool small = before.sparse() && 2 * (before.entries + kN / 10) < kN;
    EXPECT_EQ(host_.Get(kC).sparse(), small) << "after " << more;
  }
  EXPECT_FALSE(host_.Get(kC).sparse());
}

TEST_F(SparseSourceTest, BlendTakesItForZerosElsewhere) {
  const std::vector<float> before = Normal(9);
  host_.Set(kC, before);
  host_.Do(BlendEffect{kC, kB, 0.25});
  const std::vector<float> blend = Values(host_.Get(kC));
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(blend[i], 0.75f * before[i] + 0.25f * out_[i]) << i;
}

TEST_F(SparseSourceTest, ApplyIsThatOfTheSameDenseGradient) {
  Host dense("none");
  const std::vector<float> weights = Normal(5), other = Normal(6);
  for (Host* host : {&host_, &dense}) {
    host->Set(kMaster, weights);
    host->Set(kC, other);
    host->Do(ApplyEffect{{.gradient = kC}});  // builds up momentum, which must decay
  }
  dense.Set(kB, out_);
  host_.Do(ApplyEffect{{.gradient = kB, .gradient_factor = 0.5, .lr_factor = 0.25}});
  dense.Do(ApplyEffect{{.gradient = kB, .gradient_factor = 0.5, .lr_factor = 0.25}});
  EXPECT_EQ(BitsOf(Values(host_.Get(kMaster))), BitsOf(Values(dense.Get(kMaster))));
  const auto momentum = [](Host& host) {
    const float* const values = host.actor.solver_memory[0].f32();
    return std::vector<float>(values, values + kN);
  };
  EXPECT_EQ(BitsOf(momentum(host_)), BitsOf(momentum(dense)));
  EXPECT_EQ(host_.actor.updates, 2);
}

TEST_F(SparseSourceTest, ApplyOfItsShardsIsThatOfAll) {
  Host whole("none");
  const std::vector<float> weights = Normal(5);
  host_.Set(kMaster, weights);
  whole.Set(kMaster, weights);
  whole.Set(kB, out_);
  whole.Do(ApplyEffect{{.gradient = kB}});
  for (const Range shard : {Range{0, 250'001}, Range{250'001, kN}}) {
    host_.Do(ApplyEffect{{.gradient = kArrived}}, host_.Send(kB, shard));
  }
  EXPECT_EQ(BitsOf(Values(host_.Get(kMaster))), BitsOf(Values(whole.Get(kMaster))));
  EXPECT_EQ(host_.actor.updates, 1);
}

TEST_F(SparseSourceTest, TakeIsByReferenceAndPartsAreCopied) {
  const float* const memory = host_.Get(kB).blob.f32();
  host_.Do(TakeEffect{kC, kB});
  EXPECT_EQ(host_.Get(kC).blob.f32(), memory);
  EXPECT_EQ(BitsOf(Values(host_.Get(kC))), BitsOf(out_));
  EXPECT_EQ(Values(host_.Get(kB)), std::vector<float>(kN));

  const Range half{0, kN / 2};
  const std::vector<float> first(out_.begin(), out_.begin() + kN / 2);
  host_.Do(TakeEffect{kHalf, kArrived}, host_.Send(kC, half));
  EXPECT_TRUE(host_.Get(kHalf).sparse());
  EXPECT_EQ(BitsOf(Values(host_.Get(kHalf))), BitsOf(first));

  std::vector<float> mixed = Normal(8);
  host_.Set(kA, mixed);
  host_.Do(TakeEffect{kA, kArrived}, host_.Send(kC, half));
  std::copy(first.begin(), first.end(), mixed.begin());
  EXPECT_EQ(Values(host_.Get(kA)), mixed);
}

TEST_F(SparseSourceTest, WeightsAreNeverSparse) {
  host_.Do(TakeEffect{kMaster, kB});
  EXPECT_FALSE(host_.Get(kMaster).sparse());
  EXPECT_EQ(BitsOf(Values(host_.Get(kMaster))), BitsOf(out_));
}

TEST_F(SparseSourceTest, WrittenInSlicesItBecomesDense) {
  host_.Set(kC, Normal(9));
  host_.Do(AddEffect{kB, kC, 1});
  EXPECT_FALSE(host_.Get(kB).sparse());
  const std::vector<float> sum = Values(host_.Get(kB)), added = Normal(9);
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(sum[i], out_[i] + added[i]) << i;
  host_.Do(CompressEffect{kC, kB, 0.01});
  host_.Do(CompressEffect{kA, kC, 0.001});  // compresses a sparse vector
  EXPECT_EQ(host_.Get(kA).entries, kN / 1000);
}

TEST_F(SparseSourceTest, IsSavedAndLoadedAsItIs) {
  const std::string saved = SaveState(host_.actor.vectors);
  Host other("topk");
  other.Set(kB, Normal(1));
  LoadState(other.actor.vectors, saved);
  EXPECT_TRUE(other.Get(kB).sparse());
  EXPECT_EQ(BitsOf(Values(other.Get(kB))), BitsOf(out_));
  EXPECT_EQ(BitsOf(Values(other.Get(kA))), BitsOf(Values(host_.Get(kA))));
  EXPECT_EQ(HashState(other.actor.vectors), HashState(host_.actor.vectors));
  EXPECT_EQ(BitsOf(Values(host_.Get(kB))), BitsOf(out_)) << "saving changes nothing";
}

// --- messages

TEST(SparseMessages, PartsHaveTheEntriesOfTheirRange) {
  Host host("topk");
  host.Set(kA, Normal(1));
  host.Do(CompressEffect{kB, kA, 0.1});
  const std::vector<float> all = Values(host.Get(kB));
  int64_t entries = 0;
  for (const Range range : {Range{0, 3}, Range{3, 100'000}, Range{100'000, kN}}) {
    const VectorSlice part = host.Send(kB, range);
    EXPECT_TRUE(part.sparse());
    EXPECT_EQ(BitsOf(Values(part)), BitsOf({all.begin() + range.begin, all.begin() + range.end}));
    EXPECT_EQ(part.bytes(), 8 * part.entries);
    entries += part.entries;
  }
  EXPECT_EQ(entries, kN / 10);
}

TEST(SparseMessages, GoesOutAsDenseWhereThatIsNoLarger) {
  Host host("topk");
  std::vector<float> values(kN, 1e-6f);
  std::fill_n(values.begin(), kN / 4, 1.0f);
  host.Set(kA, values);
  host.Do(CompressEffect{kB, kA, 0.25});
  const VectorSlice first = host.Send(kB, {0, kN / 2}), last = host.Send(kB, {kN / 2 - 1, kN});
  EXPECT_FALSE(first.sparse());  // half of the elements: a dense message is no larger
  EXPECT_EQ(first.bytes(), 4 * kN / 2);
  const std::vector<float> all = Values(host.Get(kB));
  EXPECT_EQ(Values(first), std::vector<float>(all.begin(), all.begin() + kN / 2));
  EXPECT_TRUE(last.sparse());
  EXPECT_EQ(last.bytes(), 0);
  EXPECT_TRUE(host.Send(kB, {0, kN / 2 + 1}).sparse());
}

TEST(Ghost, CarriesTheNumberOfEntriesThatIsExpected) {
  Host ghost("{name: topk}", true);
  ghost.Do(AddEffect{kA, kC, 1});
  ghost.Do(CompressEffect{kB, kA, 0.01});
  EXPECT_EQ(ghost.Send(kB).bytes(), 8 * kN / 100);
  int64_t parts = 0;
  for (const Range part : {Range{0, 7}, Range{7, 300'001}, Range{300'001, kN}}) {
    parts += ghost.Send(kB, part).bytes();
  }
  EXPECT_EQ(parts, 8 * kN / 100);
  ghost.Do(AddEffect{kC, kB, 1});  // kC is not a ghost, so that the result is dense
  EXPECT_EQ(ghost.Send(kA).bytes(), 4 * kN);
  ghost.Do(ClearEffect{kC});
  ghost.Do(AddEffect{kC, kB, 1});
  EXPECT_EQ(ghost.Send(kC).bytes(), 8 * kN / 100);
  ghost.Do(AddEffect{kC, kB, 1});
  EXPECT_EQ(ghost.Send(kC).bytes(), 8 * (6000 + 6000 - 60));
  ghost.Do(CompressEffect{kB, kA, 0.6});
  EXPECT_EQ(ghost.Send(kB).bytes(), 4 * kN) << "dense is smaller";
  ghost.Do(CompressEffect{kB, kA, 1});
  EXPECT_EQ(ghost.Send(kB).bytes(), 4 * kN);
  EXPECT_EQ(ghost.queue.done().compression.entries, 3 * kN);
}

}  // namespace
}  // namespace dtrain
