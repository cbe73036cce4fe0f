// The program on the user's own NumPy arrays: answers do not depend on the axis of the channels.
#include <gmock/gmock.h>

#include <cmath>
#include <regex>

#include "tests/data/table_files.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSamples = 40, kRows = 5, kColumns = 6, kChannels = 3;

class ArraysSystemTest : public SystemTest {
 protected:
  // Returns [samples, rows, columns, channels], with one channel brighter, or the same with channels first.
  static std::vector<float> Samples(bool first) {
    std::vector<float> values(kSamples * kRows * kColumns * kChannels);
    for (int i = 0; i < std::ssize(values); ++i) {
      const int c = i % kChannels, pixel = i / kChannels % (kRows * kColumns);
      const int sample = i / kChannels / (kRows * kColumns);
      const int to = first ? (sample * kChannels + c) * kRows * kColumns + pixel : i;
      values[to] = std::sin(static_cast<float>(i)) + (c == sample % 2 ? 1.0f : 0.0f);
    }
    return values;
  }
  void Write(const std::string& name, const std::string& shape, const std::vector<float>& values) {
    std::ofstream(folder_ / name) << NpyOf<float>("<f4", shape, values);
  }
  // Returns the answer for each sample of a file, without the file's name.
  std::string Answers(const std::string& file, const std::string& before = "") {
    const Outcome outcome = Run("predict --weights run " + file, before);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::regex_replace(outcome.out, std::regex("[a-z.]+\\["), "[");
  }
};

TEST_F(ArraysSystemTest, AnswersAreTheSameWhereverTheChannelsAre) {
  std::vector<int64_t> labels(kSamples);
  for (int i = 0; i < kSamples; ++i) labels[i] = i % 2;
  Write("last.npy", "40, 5, 6, 3", Samples(false));
  Write("first.npy", "40, 3, 5, 6", Samples(true));
  Write("turned.npy", "40, 6, 5, 3", Samples(false));
  std::ofstream(folder_ / "labels.npy") << NpyOf<int64_t>("<i8", "40,", labels);
  std::ofstream(folder_ / "line.yaml")
      << "name: line\nsample: [3, 5, 6]\nlayers:\n"
         "  - {name: fc, type: inner_product, outputs: 2}\n"
         "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";
  std::ofstream(folder_ / "run.yaml")
      << "model: {name: ./line.yaml}\n"
         "data: {name: npy, train: last.npy, train_labels: labels.npy}\n"
         "batch: 6\nepochs: 5\nsolver: {name: sgd, lr: 0.1}\n";
  const Outcome trained = Run("train --config run.yaml --output run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string answers = Answers("last.npy");
  EXPECT_THAT(answers, AllOf(HasSubstr("[0]  0 "), HasSubstr("[1]  1 "), HasSubstr("[39]  1 ")));
  EXPECT_EQ(Answers("first.npy"), answers);
  EXPECT_EQ(Answers("last.npy.gz", "gzip -c last.npy > last.npy.gz;"), answers);
  const Outcome refused = Run("predict --weights run turned.npy");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("turned.npy: [40, 6, 5, 3], the model takes samples of"));
  EXPECT_THAT(Run("predict --weights run last.npy").err, Not(HasSubstr("deviations")));
  // Each number of a channel as many of its standard deviations above its mean.
  const std::vector<float> samples = Samples(false);
  const auto answered = [&](double deviations) {
    std::vector<float> far = samples;
    for (size_t c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (size_t i = c; i < samples.size(); i += kChannels) {
        sum += samples[i];
        squares += static_cast<double>(samples[i]) * samples[i];
      }
      const double count = static_cast<double>(samples.size()) / kChannels, mean = sum / count;
      const double above = deviations * std::sqrt(squares / count - mean * mean);
      for (size_t i = c; i < far.size(); i += kChannels) far[i] = static_cast<float>(mean + above);
    }
    Write("far.npy", "40, 5, 6, 3", far);
    return Run("predict --weights run far.npy").err;
  };
  EXPECT_THAT(answered(9.5), Not(HasSubstr("deviations")));
  EXPECT_THAT(answered(10.6), HasSubstr("far.npy: its numbers are on average 1"));
}

}  // namespace
}  // namespace dtrain
