// Compares selections from values in the GPU's memory with those from host memory.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/compress/device_values.h"
#include "framework/compress/scan_selection.h"
#include "framework/core/magnitude.h"
#include "framework/device/buffer.h"
#include "tests/compress/values.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/compressors.h"

namespace dtrain {
namespace {

class ValuesThere {
 public:
  explicit ValuesThere(const std::vector<float>& values)
      : memory_(DeviceUnderTest(), values.size() * sizeof(float)),
        passes_(MakeDeviceValues(DeviceUnderTest())) {
    CopyIn(memory_.arena(), values.data(), std::ssize(values));
    passes_->Begin(memory_.f32(), std::ssize(values));
  }
  DeviceValues& operator*() { return *passes_; }
  DeviceValues* operator->() { return passes_.get(); }

 private:
  const Buffer memory_;
  const std::unique_ptr<DeviceValues> passes_;
};

struct Distribution {
  const char* name;
  std::vector<float> values;
};

// Returns vectors of few values, and of more values than a selection inspects one by one.
std::vector<Distribution> Distributions() {
  std::vector<Distribution> shapes;
  for (const int64_t n : {1, 7, 5000, 90'000}) {
    const std::vector<float> normal = NormalValues(n, static_cast<uint64_t>(n));
    shapes.push_back({"normal", normal});
    shapes.push_back({"laplace", LaplaceValues(n, 3)});
    shapes.push_back({"rare", Values(n, [&](uint64_t i) {
                        return i % 50 == 3 ? normal[i] : i % 2 == 0 ? 0.0f : -0.0f;
                      })});
    shapes.push_back({"equal", Values(n, [](uint64_t) { return -0.25f; })});
    shapes.push_back({"zeros", Values(n, [](uint64_t) { return 0.0f; })});
  }
  return shapes;
}

class SelectionsOnTheGpu : public testing::TestWithParam<std::string> {};

// The second call starts from the threshold that the first call returned.
TEST_P(SelectionsOnTheGpu, ChooseWhatTheCpuChooses) {
  const CompressConfig config = MakeCompress(GetParam());
  const Compressor& compressor = *config.compressor;
  for (const Distribution& shape : Distributions()) {
    ValuesThere there(shape.values);
    for (const double density : {0.001, 0.02, 0.3}) {
      SCOPED_TRACE(testing::Message()
                   << shape.name << ", n " << shape.values.size() << ", density " << density);
      SelectionKey key{.seed = 5, .actor = 2, .call = 9, .unit = 1};
      for (int call = 0; call < 2; ++call) {
        float want_threshold = 0, threshold = 0;
        const auto want = SelectFrom(compressor, shape.values, density, key, &want_threshold);
        const auto got = SelectFrom(compressor, *there, density, key, &threshold);
        EXPECT_TRUE(got == want) << got.size() << " entries, " << want.size() << " on the CPU";
        EXPECT_NEAR(threshold, want_threshold, 1e-6 * want_threshold);
        key.threshold = want_threshold;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compressors, SelectionsOnTheGpu,
                         testing::Values("topk", "dgc", "trimmed",
                                         "{name: trimmed, selector: search}", "randk", "gdtopk",
                                         "gaussiank", "{name: gaussiank, loop: published}"));

TEST(DeviceValuesOnTheGpu, NoCompressorIsLeftOut) {
  EXPECT_EQ(CompressorNames(false),
            (std::vector<std::string>{"dgc", "gaussiank", "gdtopk", "randk", "topk", "trimmed"}));
}

// Each answer refers to the values of the last Begin, in whatever order the questions are asked.
TEST(DeviceValuesOnTheGpu, AnswerForTheValuesThatWereNamedLast) {
  const std::vector<float> normal = NormalValues(70'000, 1), few = {3, -4, 0, 1};
  ValuesThere there(normal);
  const Buffer other(DeviceUnderTest(), few.size() * sizeof(float));
  CopyIn(other.arena(), few.data(), 4);
  const UnitEntries all = there->Reaching(1, 10);  // needs two round trips
  ASSERT_EQ(std::ssize(all.places), 70'000 - std::count(normal.begin(), normal.end(), 0.0f));
  EXPECT_EQ(all.values.back(), normal[static_cast<size_t>(all.places.back())]);
  EXPECT_EQ(there->All()[69'999], normal[69'999]);

  there->Begin(other.f32(), 4);
  EXPECT_EQ(there->All()[1], -4);
  const UnitEntries large = there->Reaching(Magnitude(3.0f), 1);
  EXPECT_EQ(std::vector(large.places.begin(), large.places.end()), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(std::vector(large.values.begin(), large.values.end()), (std::vector<float>{3, -4}));
  const UnitMoments moments = there->Moments();
  EXPECT_EQ(SumOf(moments.sum), 0);
  EXPECT_EQ(SumOf(moments.squares), 26);
  EXPECT_EQ(SumOf(moments.magnitudes), 8);
  EXPECT_EQ(OfMagnitude(moments.largest), 4);
  const std::span<const float> runs = there->Runs(std::vector<int64_t>{0, 2}, 2);
  EXPECT_EQ(std::vector(runs.begin(), runs.end()), few);
}

TEST(DeviceValuesOnTheGpu, FindWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const size_t place : {0, 777, 4999}) {
      std::vector<float> values = NormalValues(5000, 1);
      EXPECT_TRUE(ValuesThere(values)->Finite());
      values[place] = bad;
      EXPECT_FALSE(ValuesThere(values)->Finite());
    }
  }
}

}  // namespace
}  // namespace dtrain
