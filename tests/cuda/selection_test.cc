// Compares selections from values in the GPU's memory with those from host memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "framework/compress/device_values.h"
#include "framework/compress/scan_selection.h"
#include "framework/core/magnitude.h"
#include "framework/device/buffer.h"
#include "tests/compress/values.h"
#include "tests/cuda/standin_counts.h"
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
    for (const double density : {0.001, 0.02, 0.1, 0.3, 0.7}) {
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
                                         "{name: trimmed, selector: search}", "randk",
                                         "{name: randk, seeds: same}", "gdtopk", "gaussiank",
                                         "{name: gaussiank, loop: published}"));

struct SelectionCost {
  std::string compress;
  double reads;    // bytes that kernels touch, in units of one read of all values, at most
  uint64_t waits;  // of the host
  double copied;   // bytes from and to the host, in the same unit
};
std::ostream& operator<<(std::ostream& out, const SelectionCost& cost) {
  return out << cost.compress;
}

class SelectionCosts : public testing::TestWithParam<SelectionCost> {};

TEST_P(SelectionCosts, AreNoMoreThanThese) {
  if (!Counter::Counts()) {
    GTEST_SKIP() << "the stand-in is missing, which counts: DTRAIN_TEST_GPU chose a GPU";
  }
  const SelectionCost& most = GetParam();
  const CompressConfig config = MakeCompress(most.compress);
  constexpr int64_t kCount = 1'000'000;
  ValuesThere there(NormalValues(kCount, 4));
  SelectionKey key{.seed = 5};
  SelectFrom(*config.compressor, *there, 0.001, key, &key.threshold);  // rooms are made
  Counter counter;
  SelectFrom(*config.compressor, *there, 0.001, key);
  const DeviceCounts counts = counter.Since();
  const double unit = kCount * sizeof(float);
  const double reads = static_cast<double>(counts.read + counts.written) / unit;
  const double copied = static_cast<double>(counts.up + counts.down) / unit;
  EXPECT_LE(reads, most.reads);
  EXPECT_LE(counts.waits, most.waits);
  EXPECT_LE(copied, most.copied);
  std::printf("%s: %.2f reads, %lu kernels, %lu waits, %.3f copied\n", most.compress.c_str(), reads,
              counts.kernels, counts.waits, copied);
}

INSTANTIATE_TEST_SUITE_P(
    Compressors, SelectionCosts,
    testing::Values(SelectionCost{"topk", 3, 2, 0.01}, SelectionCost{"dgc", 3, 2, 0.01},
                    SelectionCost{"trimmed", 6, 3, 0.01},
                    SelectionCost{"{name: trimmed, selector: search}", 8, 4, 0.05},
                    SelectionCost{"randk", 0.1, 1, 0.01}, SelectionCost{"gaussiank", 3, 1, 0.01},
                    SelectionCost{"{name: gaussiank, loop: published}", 4, 2, 0.02}));

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
  const UnitEntries all = there->Reaching(1, 70'000).entries;
  ASSERT_EQ(std::ssize(all.places), 70'000 - std::count(normal.begin(), normal.end(), 0.0f));
  EXPECT_EQ(all.values.back(), normal[static_cast<size_t>(all.places.back())]);
  EXPECT_EQ(there->All()[69'999], normal[69'999]);

  there->Begin(other.f32(), 4);
  EXPECT_EQ(there->All()[1], -4);
  const UnitEntries large = there->Reaching(Magnitude(3.0f), 1).entries;
  EXPECT_EQ(std::vector(large.places.begin(), large.places.end()), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(std::vector(large.values.begin(), large.values.end()), (std::vector<float>{3, -4}));
  const UnitMoments moments = there->Moments();
  EXPECT_EQ(SumOf(moments.sum), 0);
  EXPECT_EQ(SumOf(moments.squares), 26);
  EXPECT_EQ(SumOf(moments.magnitudes), 8);
  EXPECT_EQ(OfMagnitude(moments.largest), 4);
  const std::span<const float> some = there->At(std::vector<int32_t>{0, 1, 3});
  EXPECT_EQ(std::vector(some.begin(), some.end()), (std::vector<float>{3, -4, 1}));
}

// Few entries come as they are, and of many the largest are found by sorting.
TEST(DeviceValuesOnTheGpu, OfManyEntriesTheLargestAtTheLowestPlaces) {
  std::vector<float> values = Values(30'000, [](uint64_t i) {
    return static_cast<float>(i % 4) * (i % 8 < 4 ? 1.0f : -1.0f);  // 0, 1, 2, 3, -0, -1, ...
  });
  ValuesThere there(values);
  for (const int64_t most : {10, 1000, 5000, 9000, 22'500, 29'000}) {
    const ReachingEntries reached = there->Reaching(Magnitude(1.0f), most);
    EXPECT_EQ(reached.count, 22'500);
    const auto places = reached.entries.places;
    EXPECT_EQ(std::ssize(places), std::min<int64_t>(most, 22'500));
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    int64_t of_three = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(reached.entries.values[i], values[static_cast<size_t>(places[i])]);
      of_three += std::abs(reached.entries.values[i]) == 3;
    }
    EXPECT_EQ(of_three, std::min<int64_t>(most, 7500));
    if (most < 7500) {
      EXPECT_EQ(places.back(), 4 * most - 1) << "of equal ones the first";
    }
  }
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
