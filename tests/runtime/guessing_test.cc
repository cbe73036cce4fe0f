// Tests whether a run whose accuracy is that of guessing says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/core/log.h"
#include "framework/evaluate/guessing.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A set of samples with these classes in its test split, as a published set of images has.
class SetOfClasses : public OwnDataSet {
 public:
  SetOfClasses(OwnData data, std::vector<uint16_t> test)
      : OwnDataSet(std::move(data)), test_(std::move(test)) {}
  std::span<const uint16_t> ClassOf(Split split) const override {
    return split == Split::kTest ? std::span<const uint16_t>(test_) : std::span<const uint16_t>();
  }

 private:
  std::vector<uint16_t> test_;
};

class SourceOfClasses : public OwnSource {
 public:
  explicit SourceOfClasses(const OwnData& data) : OwnSource(data), data_(data) {}
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    std::vector<uint16_t> classes;
    for (int64_t i = 0; i < data_.test_samples; ++i) {
      classes.push_back(static_cast<uint16_t>(data_.label(i)));
    }
    return std::make_unique<SetOfClasses>(data_, classes);
  }

 private:
  const OwnData data_;
};

// Returns samples of two classes, one of four is of class 1; the number tells the class, or nothing.
OwnData OneOfFour(bool tells) {
  return {.train_samples = 400,
          .test_samples = 200,
          .number = [tells](Split, int64_t i,
                            int64_t) { return !tells       ? 0.0
                                              : i % 4 == 0 ? 1.0
                                                           : -1.0; },
          .label = [](int64_t i) { return int64_t{i % 4 == 0}; }};
}

// Returns a model of `classes` classes with these layers behind its scores.
Graph Scored(int64_t classes, const std::string& metrics) {
  const std::string text =
      "name: line\nlayers:\n"
      "  - {name: fc, type: inner_product, outputs: " +
      std::to_string(classes) +
      "}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n" +
      metrics;
  const OwnData data{.classes = classes};
  return Graph::FromText(text, "line.yaml", data.fields());
}

constexpr char kAccuracy[] = "  - {name: accuracy, type: accuracy, input: [fc, label]}\n";

TEST(Guessing, HasTheShareOfTheMostFrequentClass) {
  const OwnData data{.classes = 4};
  const SetOfClasses set(data, {0, 1, 1, 3, 1, 3, 3, 3});
  const std::optional<Guess> guess = GuessOf(Scored(4, kAccuracy), set, Split::kTest);
  ASSERT_TRUE(guess.has_value());
  EXPECT_EQ(guess->accuracy, 0.5);
  EXPECT_EQ(guess->samples, 8);
  const Graph top2 = Scored(4, "  - {name: top2, type: accuracy, top_k: 2, input: [fc, label]}\n");
  EXPECT_EQ(GuessOf(top2, set, Split::kTest)->accuracy, 7.0 / 8);
  EXPECT_FALSE(GuessOf(Scored(4, ""), set, Split::kTest)) << "the model has no accuracy";
  EXPECT_FALSE(GuessOf(top2, set, Split::kTrain)) << "the samples have no classes";
}

TEST(Guessing, ReachesTwoStandardErrorsAboveIt) {
  // The standard error of a share of .5 of 400 samples is .025.
  EXPECT_TRUE(IsGuessing(0.55, {0.5, 400}));
  EXPECT_TRUE(IsGuessing(0.3, {0.5, 400}));
  EXPECT_FALSE(IsGuessing(0.5501, {0.5, 400}));
  EXPECT_FALSE(IsGuessing(1, {0.5, 2})) << "all answers are right";
  EXPECT_TRUE(IsGuessing(1, {1, 2})) << "there is one class alone";
}

TEST(Guessing, OfARegressionLeavesTheVarianceAsItIs) {
  const Guess guess{.samples = 400, .loss = 2.0};
  EXPECT_TRUE(IsGuessing(2.5, guess));
  EXPECT_TRUE(IsGuessing(1.99, guess)) << "less than 4 / 400 below";
  EXPECT_FALSE(IsGuessing(1.97, guess));
  EXPECT_TRUE(IsGuessing(std::nan(""), guess));
  EXPECT_EQ(
      GuessText(2.5, guess),
      "test loss 2.5 is that of guessing: the mean of the training labels as every answer has "
      "2; check the labels, and try another solver.lr or more epochs");
}

class GuessingRun : public RunFixture {
 protected:
  RunConfig OfLine(const std::string& output, bool tells,
                   const std::vector<std::string>& more = {}) {
    std::ofstream(folder_ / "model.yaml")
        << "name: line\nlayers:\n  - {name: fc, type: inner_product, outputs: 2}\n"
           "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
        << kAccuracy;
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(), "threads=1"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits}\nbatch: 20\nepochs: 3\nsolver: {name: sgd, lr: 1}\n",
        "run.yaml", overrides);
    RunConfig config = ReadRunConfig(document);
    config.data.source = std::make_shared<SourceOfClasses>(OneOfFour(tells));
    return config;
  }
  // Runs it with --quiet and returns the output on stderr.
  std::string Said(const RunConfig& config, Summary& summary) {
    log::SetLevel(log::Level::kWarning);
    ::testing::internal::CaptureStderr();
    summary = Run(config).summary;
    const std::string said = ::testing::internal::GetCapturedStderr();
    log::SetLevel(log::Level::kInfo);
    return said;
  }
};

TEST_F(GuessingRun, WarnsAtTheEndAndInTheSummary) {
  Summary summary;
  const std::string said = Said(OfLine("idle", false), summary);
  ASSERT_TRUE(summary.test && summary.test->accuracy);
  EXPECT_EQ(summary.test->accuracy, 0.75) << "all are taken for the class of most";
  EXPECT_EQ(summary.test->guess_accuracy, 0.75);
  EXPECT_TRUE(summary.test->guessing);
  EXPECT_THAT(said, AllOf(HasSubstr("is that of guessing"), HasSubstr("has 75.00 %")));
  const auto json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json["test"]["guessing"], true);
  EXPECT_EQ(json["test"]["guess_accuracy"], 0.75);
  EXPECT_THAT(Said(OfLine("learns", true), summary), Not(HasSubstr("guessing")));
  EXPECT_EQ(summary.test->accuracy, 1);
  EXPECT_FALSE(summary.test->guessing);
  EXPECT_FALSE(nlohmann::json::parse(ToJson(summary))["test"].contains("guessing"));
}

TEST_F(GuessingRun, ASimulationKnowsItToo) {
  const RunConfig config =
      OfLine("simulated", true, {"cluster.workers=2", "cluster.step_seconds=0.01"});
  SimulatedRun run(config, std::nullopt, true);
  const Summary summary = run.Run();
  EXPECT_EQ(summary.test->guess_accuracy, 0.75);
  EXPECT_FALSE(summary.test->guessing);
}

TEST(Guessing, IsWarnedOfOnceARunIsComplete) {
  Summary summary;
  summary.test = TestResult{.accuracy = 0.1135, .guess_accuracy = 0.1135, .guessing = true};
  const auto said = [&](const std::string& status) {
    summary.status = status;
    ::testing::internal::CaptureStderr();
    WarnOfGuessing(summary, "ps_asp");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("completed"),
              HasSubstr("warning ps_asp: test accuracy 11.35 % is that of guessing"));
  EXPECT_EQ(said("stopped"), "");
  summary.test->guessing = false;
  EXPECT_EQ(said("completed"), "");
}

}  // namespace
}  // namespace dtrain
