#include "framework/results/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

StepMetrics AtStep(int64_t step) {
  return {.at = {.epoch = 0, .step = step, .samples = 64 * step, .seconds = 0.5},
          .loss = 2.25,
          .learning_rate = 0.01,
          .samples_per_second = 8000,
          .exposed_seconds = 0.001};
}

std::vector<nlohmann::json> Lines(const fs::path& path) {
  std::istringstream in(Slurp(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<int64_t> Steps(const fs::path& path) {
  std::vector<int64_t> steps;
  for (const nlohmann::json& line : Lines(path)) steps.push_back(line["step"]);
  return steps;
}

TEST(Metrics, OneLineAThing) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  MetricsWriter writer(path);
  writer.Write(AtStep(20));
  writer.Write(EvaluationMetrics{.at = {1, 938, 60032, 9.5},
                                 .loss = 0.05,
                                 .accuracy = 0.984,
                                 .evaluate_seconds = 0.2,
                                 .others = {{"top5", 0.999}}});
  writer.Write(CheckpointMetrics{{1, 938, 60032, 9.5}, "step-00000938.h5", 0.01});
  const std::vector<nlohmann::json> lines = Lines(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0],
            nlohmann::json::parse(R"({"schema":1,"kind":"step","epoch":1,"step":20,"samples":1280,
      "seconds":0.5,"loss":2.25,"lr":0.01,"samples_per_second":8000.0,"exposed_seconds":0.001})"));
  EXPECT_EQ(lines[1], nlohmann::json::parse(R"({"schema":1,"kind":"evaluation","epoch":2,"step":938,
      "samples":60032,"seconds":9.5,"loss":0.05,"accuracy":0.984,"top5":0.999,"evaluate_seconds":0.2})"));
  EXPECT_EQ(lines[2], nlohmann::json::parse(R"({"schema":1,"kind":"checkpoint","epoch":2,"step":938,
      "samples":60032,"seconds":9.5,"file":"step-00000938.h5","write_seconds":0.01})"));
}

TEST(Metrics, AreNoProgram) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  const MetricsWriter writer(path);
  const fs::perms runs = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  EXPECT_EQ(fs::status(path).permissions() & runs, fs::perms::none);
}

TEST(Metrics, TextHasASplitAPerplexityAndABleu) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  MetricsWriter(path).Write(
      EvaluationMetrics{.loss = 3.4, .split = "test", .perplexity = 30, .bleu = 28.5});
  EXPECT_EQ(Lines(path)[0],
            nlohmann::json::parse(R"({"schema":1,"kind":"evaluation","epoch":1,"step":0,
      "samples":0,"seconds":0.0,"split":"test","loss":3.4,"perplexity":30.0,"bleu":28.5,
      "evaluate_seconds":0.0})"));
}

TEST(Metrics, TellOfTrainingTimeAndAreReadToWhereTheyBreakOff) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  {
    MetricsWriter writer(path);
    writer.Write(AtStep(10));
    StepMetrics step = AtStep(20);
    step.at.training_seconds = 7.5;
    step.loss = 0.25;
    writer.Write(step);
    writer.Write(EvaluationMetrics{.at = {0, 20, 1280, 9.5, 7.75}, .loss = 3});
  }
  EXPECT_EQ(Lines(path)[1]["training_seconds"], 7.5);
  EXPECT_EQ(ReadEvaluations(path, {})[0].at.training_seconds, 7.75);
  Spit(path, Slurp(path) + "{\"kind\":\"step\",\"training_sec");  // killed here
  EXPECT_EQ(ReadEvaluations(path, {}).size(), 1u);
}

TEST(Metrics, EvaluationsAreReadAsTheyWereWritten) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  EXPECT_TRUE(ReadEvaluations(path, {}).empty());
  {
    MetricsWriter writer(path);
    writer.Write(AtStep(20));
    writer.Write(EvaluationMetrics{.at = {1, 938, 60032, 9.5},
                                   .loss = 0.05,
                                   .accuracy = 0.984,
                                   .evaluate_seconds = 0.2,
                                   .others = {{"top5", 0.999}, {"top2", 0.99}}});
    writer.Write(CheckpointMetrics{{1, 938, 60032, 9.5}, "step-00000938.h5", 0.01});
    writer.Write(EvaluationMetrics{.at = {2, 1876, 120064, 19},
                                   .loss = std::numeric_limits<double>::quiet_NaN(),
                                   .split = "validation",
                                   .perplexity = 30,
                                   .bleu = 28.5});
  }
  Spit(path, Slurp(path) + "{\"kind\":\"evaluation\",\"epoch\":3,\"st");  // killed here
  const std::vector<EvaluationMetrics> read = ReadEvaluations(path, {"top5", "top2"});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].at.epoch, 1);
  EXPECT_EQ(read[0].at.step, 938);
  EXPECT_EQ(read[0].at.samples, 60032);
  EXPECT_EQ(read[0].at.seconds, 9.5);
  EXPECT_EQ(read[0].loss, 0.05);
  EXPECT_EQ(read[0].accuracy, 0.984);
  EXPECT_EQ(read[0].evaluate_seconds, 0.2);
  EXPECT_THAT(read[0].others,
              ElementsAre(testing::Pair("top5", 0.999), testing::Pair("top2", 0.99)));
  EXPECT_EQ(read[0].split, "");
  EXPECT_FALSE(read[0].perplexity || read[0].bleu);
  EXPECT_EQ(read[1].at.step, 1876);
  EXPECT_TRUE(std::isnan(read[1].loss));
  EXPECT_FALSE(read[1].accuracy.has_value());
  EXPECT_TRUE(read[1].others.empty());
  EXPECT_EQ(read[1].split, "validation");
  EXPECT_EQ(read[1].perplexity, 30);
  EXPECT_EQ(read[1].bleu, 28.5);
}

// The line is from an edited file or another version.
TEST(Metrics, WhatIsNoCountIsNone) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  Spit(path,
       R"({"kind":"evaluation","epoch":"one","step":2.5,"loss":"low","accuracy":null,"split":7})"
       "\n");
  const std::vector<EvaluationMetrics> read = ReadEvaluations(path, {});
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].at.epoch, 0);
  EXPECT_EQ(read[0].at.step, 0);
  EXPECT_EQ(read[0].at.samples, 0);
  EXPECT_EQ(read[0].at.seconds, 0);
  EXPECT_EQ(read[0].evaluate_seconds, 0);
  EXPECT_EQ(read[0].split, "");
  EXPECT_TRUE(std::isnan(read[0].loss));
  EXPECT_FALSE(read[0].accuracy.has_value());
}

TEST(Metrics, NotANumberIsNullAndNoAccuracyIsAbsent) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  MetricsWriter writer(path);
  writer.Write(EvaluationMetrics{.at = {}, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(Lines(path)[0]["loss"].is_null());
  EXPECT_FALSE(Lines(path)[0].contains("accuracy"));
}

TEST(Metrics, AFreshRunBeginsAnew) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  MetricsWriter(path).Write(AtStep(1));
  MetricsWriter(path).Write(AtStep(2));
  EXPECT_THAT(Steps(path), ElementsAre(2));
}

TEST(Metrics, AResumedRunGoesOnAfterItsStep) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  {
    MetricsWriter writer(path);
    for (const int64_t step : {10, 20, 30}) writer.Write(AtStep(step));
  }
  Spit(path, Slurp(path) + "[20]\n{}\n{\"step\":\"20\"}\n{\"step\":19.5}\n" +
                 "{\"kind\":\"step\",\"epoch\":0,\"st");  // killed here
  MetricsWriter(path, 20).Write(AtStep(30));
  EXPECT_THAT(Steps(path), ElementsAre(10, 20, 30));
}

TEST(Metrics, AResumedRunMayHaveNoFileYet) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  MetricsWriter(path, 20).Write(AtStep(30));
  EXPECT_THAT(Steps(path), ElementsAre(30));
}

// The run continues in another folder.
TEST(Metrics, AFileWithoutEvaluationsBeginsWithThoseFromBefore) {
  const fs::path path = FreshFolder() / "metrics.jsonl";
  const EvaluationMetrics before{.at = AtStep(10).at, .loss = 0.5, .weights_step = 7};
  const std::vector<std::string> lines = {ToLine(before)};
  MetricsWriter(path, 20, lines).Write(AtStep(30));
  EXPECT_THAT(Steps(path), ElementsAre(10, 30));
  EXPECT_EQ(ReadEvaluations(path, {})[0].weights_step, 7);
  EXPECT_EQ(ToLine(ReadEvaluations(path, {})[0]), lines[0]);
  // In its own folder the file already has them.
  MetricsWriter(path, 20, lines).Write(AtStep(40));
  EXPECT_THAT(Steps(path), ElementsAre(10, 40));
}

TEST(Metrics, AFileThatCannotBeWrittenIsNamed) {
  const fs::path folder = FreshFolder();
  const std::string nowhere = folder / "missing/metrics.jsonl", path = folder / "short.jsonl";
  EXPECT_EQ(WhatOf<CheckpointError>([&] { MetricsWriter writer(nowhere); }),
            "cannot write " + nowhere + ": No such file or directory");
  EXPECT_EQ(WhatOf<CheckpointError>([&] {
              const FileSizeLimit limit(10);
              MetricsWriter(path).Write(AtStep(1));
            }),
            "cannot write " + path + ": File too large");
}

}  // namespace
}  // namespace dtrain
