// Counts what one training step of the shipped models asks of a device: launches, kernels, waits, copies and bytes of
// its memory, these beside the least.  They decide the speed of small models, and can be had without a GPU.
// DTRAIN_TABLES=1 prints them by kernel and by layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cuda/least_bytes.h"
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
  double of_least;   // as a multiple of the least
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

double Megabytes(const DeviceCounts& counts) {
  return static_cast<double>(counts.read + counts.written) / 1e6;
}

// The memory that layers touch, in the order of the first call of each.  What the program does between two calls
// (orders and types of images and parameters) is in the row "between layers" where it has a call of its own, else in
// the row of the call behind it.
class TableOfLayers {
 public:
  explicit TableOfLayers(Precision precision) : precision_(precision) {}

  void Add(const KernelTiming& call, double megabytes) {
    Row& row = Of(call.layer == nullptr ? "between layers" : call.layer->name);
    row.least += LeastBytes(call, precision_) / 1e6;
    row.is += megabytes;
    if (call.layer == nullptr || call.backward) return;
    for (const Tensor& param : call.args->params) {
      if (param.dtype != DType::kF32) in_16_bits_ += param.shape.count();
    }
  }
  // `megabytes` are those of the whole step.
  void AddUpdate(int64_t weights, double megabytes) {
    for (const Row& row : rows_) megabytes -= row.is;
    const bool loss_scale = precision_ == Precision::kFp16;
    const double least = LeastBytesOfUpdate(weights, in_16_bits_, loss_scale);
    rows_.push_back({"update", least / 1e6, megabytes});
  }
  double least() const {
    double sum = 0;
    for (const Row& row : rows_) sum += row.least;
    return sum;
  }
  void Print() const {
    std::printf("%-40s %10s %10s\n", "layer", "least, MB", "is, MB");
    for (const Row& row : rows_) {
      std::printf("%-40s %10.2f %10.2f\n", row.name.c_str(), row.least, row.is);
    }
  }

 private:
  struct Row {
    std::string name;
    double least = 0, is = 0;
  };

  Row& Of(const std::string& name) {
    const auto found = std::ranges::find(rows_, name, &Row::name);
    return found != rows_.end() ? *found : rows_.emplace_back(Row{.name = name});
  }

  const Precision precision_;
  std::vector<Row> rows_;
  int64_t in_16_bits_ = 0;  // parameters that kernels read so
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
  const std::string by_kernel = OfStandin<const char*()>("StandinTable")();
  const double megabytes = Megabytes(counts);
  TableOfLayers layers(c.precision);
  Counter of_call;
  rig.net.set_observer([&](const KernelTiming& call) {
    layers.Add(call, Megabytes(of_call.Since()));
    of_call.Forget();
  });
  rig.Step();  // call by call
  layers.AddUpdate(rig.graph().weights().size(), megabytes);
  EXPECT_EQ(counts.launches, 1U) << "the graph's";
  EXPECT_LE(counts.kernels, c.kernels);
  EXPECT_EQ(counts.waits, 0U);
  EXPECT_LE(megabytes, c.megabytes);
  EXPECT_LE(megabytes, c.of_least * layers.least());
  EXPECT_GE(megabytes, 0.9 * layers.least()) << "this least is not the least";
  EXPECT_EQ(counts.up, 0U);
  EXPECT_EQ(counts.down, 0U);
  if (std::getenv("DTRAIN_TABLES") != nullptr) {
    std::puts(by_kernel.c_str());
    layers.Print();
  }
  std::printf(
      "%s: %lu launches, %lu kernels, %lu waits, %.1f MB read, %.1f MB written, %.2f of the "
      "least\n",
      testing::PrintToString(c).c_str(), counts.launches, counts.kernels, counts.waits,
      static_cast<double>(counts.read) / 1e6, static_cast<double>(counts.written) / 1e6,
      megabytes / layers.least());
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepCounts,
    testing::Values(Case{"lenet5", 64, Precision::kFp32, 15, 5.2, 1.08},
                    Case{"lenet5", 64, Precision::kTf32, 15, 5.2, 1.08},
                    Case{"lenet5", 64, Precision::kBf16, 15, 4.5, 1.09},
                    Case{"lenet5", 64, Precision::kFp16, 16, 5.0, 1.14},
                    Case{"resnet18", 128, Precision::kFp32, 148, 5351, 1.03},
                    Case{"resnet18", 128, Precision::kTf32, 151, 5564, 1.07},
                    Case{"resnet18", 128, Precision::kBf16, 151, 2956, 1.09},
                    Case{"resnet18", 128, Precision::kFp16, 152, 3046, 1.1},
                    Case{"resnet20", 128, Precision::kFp32, 153, 1637, 1.03},
                    Case{"vgg19_bn", 128, Precision::kFp32, 144, 2965, 1.06},
                    Case{"vgg19_bn", 128, Precision::kTf32, 147, 3313, 1.19},
                    Case{"vgg19_bn", 128, Precision::kBf16, 148, 1989, 1.22},
                    Case{"vgg19_bn", 128, Precision::kFp16, 149, 2150, 1.25},
                    Case{"seq2seq_attention", 128, Precision::kFp32, 556, 4036, 1.15},
                    Case{"seq2seq_attention", 128, Precision::kTf32, 556, 4036, 1.15},
                    Case{"seq2seq_attention", 128, Precision::kBf16, 579, 3408, 1.21},
                    Case{"seq2seq_attention", 128, Precision::kFp16, 580, 3572, 1.23}));

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
