// Tests the conclusions that commands print: whether a replay is equal, how good a split is, how much seeds differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/train_report.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/file.h"
#include "framework/results/run_record.h"
#include "framework/setup/run_exchange.h"
#include "framework/train/trainer.h"
#include "framework/train/training_step.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"
#include "tests/support/toy_translation.h"

namespace dtrain {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDigits[] =
    "model: {name: " DTRAIN_SOURCE_DIR
    "/configs/models/lenet5.yaml}\n"
    "data: {name: digits, train_samples: 400, test_samples: 300}\n"
    "batch: 64\nepochs: 1\nthreads: 1\nsolver: {name: sgd, lr: 0.01, momentum: 0.9}\n";

// --- replay

// A record of an asynchronous run of two workers.
class ReplayVerdict : public ::testing::Test {
 protected:
  void SetUp() override {
    config::Document document =
        config::Document::FromText(kDigits, "run.yaml",
                                   {"strategy={name: ps_asp, record: true}", "cluster.workers=2",
                                    "output=" + (folder_ / "run").string()});
    const RunConfig config = ReadRunConfig(document);
    LocalWorld::Run(PlacementOf(config).ranks(),
                    [&](Transport& transport) { Train(config, {}, transport); });
    record_ = ReadRecord(path_);
  }

  CommandOutcome Replay(bool as_json = false) {
    std::vector<std::string> arguments = {"simulate", "--replay", path_};
    if (as_json) arguments.push_back("--json");
    return RunCommand(arguments);
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "run/record.bin";
  RunRecord record_;
};

TEST_F(ReplayVerdict, ASoundRecordIsEqualToTheBit) {
  const CommandOutcome text = Replay();
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("replayed " + record_.weights_sha256 + "\n"),
                              HasSubstr("\nequal to the bit\n"), Not(HasSubstr("NOT"))));
  const json result = IndentedJson(Replay(true).out);
  EXPECT_EQ(result["equal"], true);
  EXPECT_EQ(result["replayed"], result["recorded"]);
}

TEST_F(ReplayVerdict, AnotherHashIsNotEqual) {
  const std::string trained = record_.weights_sha256;
  record_.weights_sha256[63] = trained[63] == '0' ? '1' : '0';
  WriteRecord(path_, record_);
  const CommandOutcome text = Replay();
  EXPECT_EQ(text.code, 1);
  EXPECT_EQ(text.out,
            "recorded " + record_.weights_sha256 + "\nreplayed " + trained + "\nNOT equal\n");
  const CommandOutcome as_json = Replay(true);
  EXPECT_EQ(as_json.code, 1);
  EXPECT_EQ(json::parse(as_json.out)["equal"], false);
}

// The events fit, the computed values do not.
TEST_F(ReplayVerdict, AnotherConfigIsNotEqual) {
  const size_t at = record_.config_yaml.find("momentum: 0.9");
  ASSERT_NE(at, std::string::npos);
  record_.config_yaml.replace(at, 13, "momentum: 0.8");
  WriteRecord(path_, record_);
  const CommandOutcome text = Replay();
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("recorded " + record_.weights_sha256),
                              Not(HasSubstr("replayed " + record_.weights_sha256)),
                              HasSubstr("\nNOT equal\n")));
}

// --- eval --split

json LineOf(const std::string& metrics, const std::string& split) {
  json found;
  std::istringstream lines(ReadFile(metrics));
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    if (line["kind"] == "evaluation" && line.value("split", "") == split) found = line;
  }
  return found;
}

TEST(EvalSplit, EvaluatesTheOneThatIsAskedFor) {
  const TempFolder folder;
  WriteToyTranslation(folder.path(), 400);  // 400 sentences for training, 50 for each other split
  const std::string config =
      folder.Write("run.yaml",
                   "model: {name: toy.yaml}\ndata: {name: multi30k, root: .}\nbatch: 32\n"
                   "epochs: 2\nthreads: 1\nsolver: {name: adam, lr: 0.01, clip_norm: 1}\n");
  const std::vector<std::string> keys = {"--config", config,
                                         "--set",    "model.name=" + (folder / "toy.yaml").string(),
                                         "--set",    "data.root=" + folder.path().string()};
  std::vector<std::string> train = {"train", "--output", folder / "run"};
  train.insert(train.end(), keys.begin(), keys.end());
  ASSERT_EQ(RunCommand(train).code, 0);
  const auto evaluate = [&](const std::string& split) {
    std::vector<std::string> words = {"eval", "--json", "--weights", folder / "run"};
    if (!split.empty()) words.insert(words.end(), {"--split", split});
    words.insert(words.end(), keys.begin(), keys.end());
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  // The run evaluated the same weights at its end.
  const std::string metrics = folder / "run/metrics.jsonl";
  const json validation = evaluate("validation"), test = evaluate("test");
  EXPECT_EQ(validation["samples"], 50);
  EXPECT_EQ(validation["loss"], LineOf(metrics, "validation")["loss"]);
  EXPECT_EQ(test["samples"], 50);
  EXPECT_EQ(test["loss"], LineOf(metrics, "test")["loss"]);
  EXPECT_NE(test["loss"], validation["loss"]);
  EXPECT_EQ(evaluate(""), test) << "the default";
  const json train_split = evaluate("train");
  EXPECT_EQ(train_split["samples"], 400);
  // The sentences are those of the test split, as another data set.
  const std::filesystem::path raw = folder / "multi30k" / "raw";
  for (const std::string language : {".de", ".en"}) {
    std::filesystem::copy_file(raw / ("train" + language), raw / ("test_2016_flickr" + language),
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_EQ(evaluate("test"), train_split);
}

TEST(EvalSplit, OneThatIsNotThereIsAnError) {
  const TempFolder folder;
  const std::string config = folder.Write("run.yaml", kDigits);
  ASSERT_EQ(
      RunCommand({"train", "--config", config, "--set", "max_steps=1", "--output", folder / "run"})
          .code,
      0);
  const auto evaluate = [&](const std::string& split) {
    return RunCommand(
        {"eval", "--json", "--config", config, "--weights", folder / "run", "--split", split});
  };
  const CommandOutcome absent = evaluate("validation");
  EXPECT_EQ(absent.code, 2);
  EXPECT_EQ(absent.out, "");
  EXPECT_THAT(absent.err, AllOf(HasSubstr("the data set has no validation split"),
                                HasSubstr("take --split test")));
  const CommandOutcome unknown = evaluate("tests");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("--split"), HasSubstr("tests"), HasSubstr("validation")));
  EXPECT_EQ(json::parse(evaluate("train").out)["samples"], 400);
  EXPECT_EQ(json::parse(evaluate("test").out)["samples"], 300);
}

// The training file has changed since, and would give another normalisation.
TEST(EvalData, AreNormalisedAsTheWeightsWereTrained) {
  const TempFolder folder;
  const auto write = [&](const std::string& name, double scale) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 40; ++i) {
      text += fmt::format("{},{},{}\n", scale * (i % 7), i % 5, i % 7 > 2 ? "high" : "low");
    }
    folder.Write(name, text);
  };
  write("train.csv", 1);
  write("test.csv", 1);
  folder.Write("net.yaml",
               "name: net\nlayers:\n  - {name: fc, type: inner_product, outputs: 2}\n"
               "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n");
  const std::string config = folder.Write(
      "run.yaml", fmt::format("model: {{name: {}}}\ndata: {{name: csv, train: {}, test: {}}}\n"
                              "batch: 8\nepochs: 3\nthreads: 1\nsolver: {{name: sgd, lr: 0.1}}\n",
                              (folder / "net.yaml").string(), (folder / "train.csv").string(),
                              (folder / "test.csv").string()));
  ASSERT_EQ(RunCommand({"train", "--config", config, "--output", folder / "run"}).code, 0);
  const auto evaluate = [&] { return RunCommand({"eval", "--json", "--weights", folder / "run"}); };
  const CommandOutcome same = evaluate();
  EXPECT_THAT(same.err, Not(HasSubstr("normalised")));
  write("train.csv", 100);
  const CommandOutcome changed = evaluate();
  EXPECT_EQ(changed.code, 0);
  EXPECT_EQ(changed.out, same.out);
  EXPECT_THAT(changed.err, HasSubstr("samples are normalised as in "));
}

// --- seeds

// Writes the summary of a run with this seed, with the fields that the table reads.
std::string WriteSummary(const TempFolder& folder, int seed, double loss, const std::string& score,
                         double value) {
  const std::string run = fmt::format("seed-{}", seed);
  folder.Write(run + "/summary.json", json{{"seed", seed},
                                           {"test", {{"loss", loss}, {score, value}}},
                                           {"weights_sha256", std::string(64, 'a')}}
                                          .dump());
  return folder / run;
}

json SeedTable(const std::vector<std::string>& outputs) {
  std::ostringstream out;
  PrintSeedTable(out, outputs, true);
  return IndentedJson(out.str());
}

TEST(SeedTable, HasMeanAndDeviationOfTheSample) {
  const TempFolder folder;
  const std::vector<std::string> outputs = {WriteSummary(folder, 3, 1.0, "accuracy", 0.9),
                                            WriteSummary(folder, 5, 2.0, "accuracy", 0.8),
                                            WriteSummary(folder, 7, 6.0, "accuracy", 0.4)};
  const json table = SeedTable(outputs);
  ASSERT_EQ(table["runs"].size(), 3u);
  EXPECT_EQ(table["runs"][1]["seed"], 5);
  EXPECT_EQ(table["runs"][1]["loss"], 2.0);
  EXPECT_EQ(table["runs"][1]["accuracy"], 0.8);
  // Of 1, 2, 6: squares 4 + 1 + 9, divided by n - 1.
  EXPECT_NEAR(table["loss"]["mean"], 3, 1e-12);
  EXPECT_NEAR(table["loss"]["deviation"], std::sqrt(14 / 2.0), 1e-12);
  EXPECT_NEAR(table["accuracy"]["mean"], 0.7, 1e-12);
  EXPECT_NEAR(table["accuracy"]["deviation"], std::sqrt(0.14 / 2), 1e-12);
  std::ostringstream text;
  PrintSeedTable(text, outputs, false);
  EXPECT_EQ(text.str(),
            "    seed        loss    accuracy  weights\n"
            "       3      1.0000     90.00 %  aaaaaaaaaaaa\n"
            "       5      2.0000     80.00 %  aaaaaaaaaaaa\n"
            "       7      6.0000     40.00 %  aaaaaaaaaaaa\n"
            "    mean      3.0000     70.00 %\n"
            "     +/-      2.6458     26.46 %\n");
}

TEST(SeedTable, OneSeedHasNoDeviation) {
  const TempFolder folder;
  const json table = SeedTable({WriteSummary(folder, 1, 2.0, "bleu", 30)});
  EXPECT_EQ(table["bleu"]["mean"], 30);
  EXPECT_EQ(table["bleu"]["deviation"], 0);
  EXPECT_EQ(table["loss"]["deviation"], 0);
}

TEST(SeedTable, IsOfTheRunsThatTrainMade) {
  const TempFolder folder;
  const std::string config = folder.Write("run.yaml", kDigits);
  const CommandOutcome outcome = RunCommand(
      {"train", "--json", "--config", config, "--seeds", "1,4", "--output", folder / "runs"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json table = json::parse(outcome.out);
  std::vector<double> losses;
  for (const int seed : {1, 4}) {
    const json summary =
        json::parse(ReadFile(folder / fmt::format("runs/seed-{}/summary.json", seed)));
    EXPECT_EQ(summary["seed"], seed);
    losses.push_back(summary["test"]["loss"]);
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(table["loss"]["mean"], (losses[0] + losses[1]) / 2, 1e-12);
  EXPECT_NEAR(table["loss"]["deviation"], std::abs(losses[0] - losses[1]) / std::sqrt(2), 1e-12);
}

TEST(SimulatedSeeds, HaveMeanAndDeviationOfTheSample) {
  const TempFolder folder;
  const std::string config =
      folder.Write("run.yaml", std::string(kDigits) +
                                   "strategy: {name: ps_asp}\nmax_steps: 6\n"
                                   "cluster: {workers: 3, step_seconds: 0.1, jitter: 0.3}\n");
  std::vector<double> seconds;
  for (const char* seed : {"1", "2", "3"}) {
    const CommandOutcome one = RunCommand(
        {"simulate", "--json", "--config", config, "--set", std::string("seed=") + seed});
    ASSERT_EQ(one.code, 0) << one.err;
    seconds.push_back(json::parse(one.out)["seconds"]);
  }
  const CommandOutcome all =
      RunCommand({"simulate", "--json", "--config", config, "--seeds", "1,2,3"});
  ASSERT_EQ(all.code, 0) << all.err;
  const double mean = (seconds[0] + seconds[1] + seconds[2]) / 3;
  double squares = 0;
  for (const double s : seconds) squares += (s - mean) * (s - mean);
  EXPECT_GT(squares, 0);
  const json column = json::parse(all.out)[0]["seconds"];
  EXPECT_NEAR(column["mean"], mean, 1e-9);
  EXPECT_NEAR(column["deviation"], std::sqrt(squares / 2), 1e-9);
}

}  // namespace
}  // namespace dtrain
