// Counts what one training step of the shipped models asks of a device: launches, kernels, waits, copies and bytes of
// its memory.  These decide the speed of small models, and can be had without a GPU.  DTRAIN_TABLES=1 prints them by
// kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/cuda/module_under_test.h"
#include "tests/cuda/standin_counts.h"
#include "tests/cuda/step_rig.h"

namespace dtrain {
namespace {

struct Case {
  std::string model;
  int64_t batch;
  Precision precision;
  // These are what a step takes at most.
  uint64_t kernels;
  double megabytes;  // read and written by them
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << ", " << NameOf(c.precision);
}

std::vector<FieldSpec> FieldsOf(const std::string& model) {
  if (model.starts_with("seq2seq")) return {};  // the model file lists them
  const Shape image = model == "lenet5" ? Shape{1, 28, 28} : Shape{3, 32, 32};
  return {{"data", DType::kF32, image}, {"label", DType::kI32, {}, 10}};
}

class StepCounts : public testing::TestWithParam<Case> {};

// Nothing is computed, only counted, since naive loops would take minutes.
class WithoutComputing {
 public:
  WithoutComputing() { Set(false); }
  ~WithoutComputing() { Set(true); }

 private:
  static void Set(bool computes) { OfStandin<void(bool)>("StandinComputes")(computes); }
};

TEST_P(StepCounts, AreNoMoreThanThese) {
  if (!Counter::Counts())
    GTEST_SKIP() << "the stand-in is missing, which counts: DTRAIN_TEST_GPU chose a GPU";
  const Case& c = GetParam();
  const Device device = DeviceUnderTest(c.precision);
  StepRig rig(device, "{name: sgd, momentum: 0.9}",
              Graph::FromFile((ConfigsFolder() / "models" / (c.model + ".yaml")).string(),
                              FieldsOf(c.model)),
              c.batch);
  rig.BringBatch();
  rig.lags = true;
  const WithoutComputing counted;
  for (int step = 0; step < 2; ++step) rig.Step();  // the second one is captured
  OfStandin<const char*()>("StandinTable")();       // begins a table
  Counter counter;
  rig.Step();
  const DeviceCounts counts = counter.Since();
  const double megabytes = static_cast<double>(counts.read + counts.written) / 1e6;
  EXPECT_EQ(counts.launches, 1U) << "the graph's";
  EXPECT_LE(counts.kernels, c.kernels);
  EXPECT_EQ(counts.waits, 0U);
  EXPECT_LE(megabytes, c.megabytes);
  EXPECT_EQ(counts.up, 0U);
  EXPECT_EQ(counts.down, 0U);
  if (std::getenv("DTRAIN_TABLES") != nullptr) {
    std::puts(OfStandin<const char*()>("StandinTable")());
  }
  std::printf("%s: %lu launches, %lu kernels, %lu waits, %.1f MB read, %.1f MB written\n",
              testing::PrintToString(c).c_str(), counts.launches, counts.kernels, counts.waits,
              static_cast<double>(counts.read) / 1e6, static_cast<double>(counts.written) / 1e6);
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepCounts,
    testing::Values(Case{"lenet5", 64, Precision::kFp32, 15, 6.3},
                    Case{"lenet5", 64, Precision::kTf32, 15, 6.3},
                    Case{"lenet5", 64, Precision::kBf16, 15, 5.6},
                    Case{"lenet5", 64, Precision::kFp16, 16, 6.1},
                    Case{"resnet18", 128, Precision::kFp32, 148, 5351},
                    Case{"resnet18", 128, Precision::kTf32, 151, 5564},
                    Case{"resnet18", 128, Precision::kBf16, 151, 2956},
                    Case{"resnet18", 128, Precision::kFp16, 152, 3046},
                    Case{"resnet20", 128, Precision::kFp32, 153, 1637},
                    Case{"vgg19_bn", 128, Precision::kFp32, 160, 3275},
                    Case{"vgg19_bn", 128, Precision::kTf32, 163, 3623},
                    Case{"vgg19_bn", 128, Precision::kBf16, 163, 2111},
                    Case{"seq2seq_attention", 128, Precision::kTf32, 558, 4148},
                    Case{"seq2seq_attention", 128, Precision::kBf16, 1002, 5941}));

// A kernel that touches memory which its launch does not name ends the program.
TEST(StandinDeathTest, NoticesAnAccessThatIsNotNamed) {
  if (!Counter::Counts())
    GTEST_SKIP() << "the stand-in is missing, which counts: DTRAIN_TEST_GPU chose a GPU";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the streams are threads
  const auto stray = OfStandin<void(bool)>("StandinStray");
  EXPECT_DEATH(stray(false),
               "kernel stray reads byte 0 of an allocation of 16384 bytes, which its "
               "launch does not name");
  EXPECT_DEATH(stray(true), "kernel stray writes byte 0 of an allocation of 16384 bytes");
}

}  // namespace
}  // namespace dtrain
