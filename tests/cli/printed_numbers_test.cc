// The numbers that commands print as text and as JSON agree with each other and with those that they are made of.
// Measured times are not checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/core/file.h"
#include "framework/core/text.h"
#include "tests/cli/command_outcome.h"
#include "tests/cli/planned_four.h"
#include "tests/data/temp_folder.h"
#include "tests/support/toy_translation.h"

namespace dtrain {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::vector<std::string>> WordsOfLines(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : LinesOf(text)) lines.push_back(WordsOf(line));
  return lines;
}

class PrintedNumbers : public ::testing::Test {
 protected:
  CommandOutcome With(const std::string& command, const std::vector<std::string>& more) const {
    const std::string config =
        folder_.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                                  "/configs/models/lenet5.yaml}\n"
                                  "data: {name: digits, train_samples: 200, test_samples: 40}\n"
                                  "batch: 40\nepochs: 2\nthreads: 1\nstrategy: {name: ps_ssp}\n"
                                  "cluster: {workers: 2, slowdown: [1, 2], step_seconds: 0.1}\n");
    std::vector<std::string> words = WordsOf(command);
    words.insert(words.end(), {"--config", config});
    words.insert(words.end(), more.begin(), more.end());
    CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }

  const TempFolder folder_;
};

TEST_F(PrintedNumbers, OfASimulationAreThoseOfItsSummary) {
  const json summary = json::parse(With("simulate", {"--json"}).out);
  int64_t gradients = 0;
  double wait = 0, busy = 0;
  for (const json& worker : summary["workers_detail"]) {
    gradients += worker["own_steps"].get<int64_t>();
    wait += worker["wait_seconds"].get<double>();
    busy += worker["compute_seconds"].get<double>();
  }
  ASSERT_GT(wait, 0);
  const double seconds = summary["seconds"], rate = static_cast<double>(gradients) / seconds;
  const double p50 = summary["step_seconds"]["p50"], bytes = summary["communication"]["bytes_sent"];
  const double percent = 100 * wait / (wait + busy), mean = summary["staleness"]["mean"];
  const int64_t lead = summary["staleness"]["clock_lead_max"];
  const double accuracy = summary["test"]["accuracy"];
  const CommandOutcome text = With("simulate", {});
  EXPECT_THAT(
      text.out,
      StartsWith(
          fmt::format("ps_ssp with 2 workers and 1 server: {:.3f} virtual s, {} gradients, "
                      "{:.2f} a second\n",
                      seconds, gradients, rate) +
          fmt::format("step {:.4f} s (p50), {:.4f} s (p90); workers wait {:.1f} % of their time\n",
                      p50, summary["step_seconds"]["p90"].get<double>(), percent) +
          fmt::format("staleness mean {:.2f}, max {}; clock lead at most {}\n", mean,
                      summary["staleness"]["max"].get<int64_t>(), lead) +
          fmt::format("sent {:.1f} MB in {} messages, {} a gradient\n", bytes / 1e6,
                      summary["communication"]["messages"].get<int64_t>(),
                      HumanBytes(bytes / static_cast<double>(gradients)))));
  EXPECT_THAT(text.out, HasSubstr("\nweights " + summary["weights_sha256"].get<std::string>()));

  const json row = IndentedJson(With("simulate", {"--compare", "ps_ssp", "--json"}).out).at(0);
  const std::pair<const char*, double> columns[] = {{"seconds", seconds},
                                                    {"gradients_per_second", rate},
                                                    {"step_seconds_p50", p50},
                                                    {"wait_percent", percent},
                                                    {"staleness_mean", mean},
                                                    {"clock_lead_max", static_cast<double>(lead)},
                                                    {"mbytes_sent", bytes / 1e6},
                                                    {"accuracy_percent", 100 * accuracy},
                                                    {"test_accuracy_percent", 100 * accuracy}};
  EXPECT_EQ(row.size(), 2 + std::size(columns)) << "with strategy and seeds, and no others";
  for (const auto& [name, value] : columns) {
    EXPECT_NEAR(row[name]["mean"].get<double>(), value, 1e-6 * value) << name;
  }
  EXPECT_THAT(
      WordsOfLines(With("simulate", {"--compare", "ps_ssp", "allreduce"}).out).at(1),
      ElementsAre("ps_ssp", fmt::format("{:.3f}", seconds), fmt::format("{:.2f}", rate),
                  fmt::format("{:.4f}", p50), fmt::format("{:.1f}", percent),
                  fmt::format("{:.2f}", mean), std::to_string(lead),
                  fmt::format("{:.1f}", bytes / 1e6), fmt::format("{:.2f}", 100 * accuracy)));
}

TEST_F(PrintedNumbers, OfATranslationHaveTwoDigits) {
  WriteToyTranslation(folder_.path(), 64);
  const std::string config = folder_.Write(
      "toy_run.yaml", "model: {name: " + (folder_.path() / "toy.yaml").string() +
                          "}\ndata: {name: multi30k, root: " + folder_.path().string() +
                          "}\nbatch: 32\nepochs: 1\nthreads: 1\nstrategy: {name: ps_asp}\n"
                          "cluster: {workers: 2, step_seconds: 0.1}\n");
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", "--config", config});
    return RunCommand(more);
  };
  const CommandOutcome one = with({"--json"});
  ASSERT_EQ(one.code, 0) << one.err;
  const double perplexity = json::parse(one.out)["test"]["perplexity"];
  EXPECT_EQ(WordsOfLines(with({"--compare", "ps_asp"}).out).at(1).back(),
            fmt::format("{:.2f}", perplexity));
}

TEST_F(PrintedNumbers, OfAnEvaluationHaveTheDigitsOfItsEpoch) {
  EXPECT_THAT(With("simulate", {}).err,
              AllOf(HasSubstr("info epoch 1.0, "), HasSubstr(" virtual s: test loss ")));
  EXPECT_THAT(With("simulate", {"--set", "evaluate.every_steps=2"}).err,
              ::testing::ContainsRegex("info epoch 0\\.[0-9][0-9], "));
}

TEST_F(PrintedNumbers, OfAPlanAreThoseOfItsJson) {
  const std::vector<std::string> asked = {"--schedules", "wfbp,single", "--collectives", "ring"};
  std::vector<std::string> as_json = asked;
  as_json.emplace_back("--json");
  const json plan = IndentedJson(Plan(folder_, as_json).out);
  const std::string text = Plan(folder_, asked).out;
  const auto lines = WordsOfLines(text);
  const auto number = [](const json& of, const char* key) { return of[key].get<double>(); };
  const json& rows = plan["predictions"];
  ASSERT_EQ(rows.size(), 2U);
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    EXPECT_NEAR(number(row, "speedup_over_wfbp"),
                number(rows[0], "step_seconds") / number(row, "step_seconds"), 1e-9);
    EXPECT_NEAR(number(row, "step_seconds"),
                number(row, "compute_seconds") + number(row, "exposed_seconds"), 1e-9);
    EXPECT_THAT(lines.at(i + 1),
                ElementsAre(row["schedule"].get<std::string>() + ",", "ring", row["buckets"].dump(),
                            fmt::format("{:.3f}", 1e3 * number(row, "step_seconds")),
                            fmt::format("{:.3f}", 1e3 * number(row, "exposed_seconds")),
                            fmt::format("{:.2f}", number(row, "speedup_over_wfbp")),
                            fmt::format("{:.2f}", number(row, "speedup_over_config"))));
  }
  const json& best = rows[0];
  ASSERT_EQ(plan["advice"]["schedule"], "wfbp");
  const auto step = [&](const json& of) {
    return fmt::format("{:.3f} ms, {:.1f} % of it after the backward pass",
                       1e3 * number(of, "step_seconds"),
                       100 * number(of, "exposed_seconds") / number(of, "step_seconds"));
  };
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("Take strategy wfbp with collective ring: a step takes " + step(best) + ".\n"),
          HasSubstr(fmt::format(
              "a sum costs {:.3f} ms to start, and {:.3f} ms for all 16.0 MB of the gradient; to "
              "compute takes {:.3f} ms.\n",
              1e3 * number(best, "start_up_seconds"), 1e3 * number(best, "sum_seconds"),
              1e3 * number(best, "compute_seconds"))),
          HasSubstr(
              fmt::format("takes {}: {:.2f} times as long.\n", step(plan["config"]),
                          number(plan["config"], "step_seconds") / number(best, "step_seconds")))));
  std::string buckets =
      "\nThe buckets of wfbp with collective ring, in milliseconds since the step "
      "began:\n  bucket   gradients        size       ready   sent from          to\n";
  int bucket = 0;
  for (const json& sending : best["sendings"]) {
    buckets +=
        fmt::format("{:>8}{:>12}{:>12}{:>12.3f}{:>12.3f}{:>12.3f}\n", ++bucket, 1, "4.0 MB",
                    1e3 * number(sending, "ready_seconds"), 1e3 * number(sending, "begin_seconds"),
                    1e3 * number(sending, "end_seconds"));
  }
  EXPECT_EQ(bucket, 4);
  EXPECT_THAT(text, ::testing::EndsWith(buckets));
}

// The plan names the config's collective where gradients are sent whole, and its exchange where entries are selected.
TEST_F(PrintedNumbers, OfThePlannedConfigNameItsCollectiveOrItsExchange) {
  const auto config = [&](const std::string& compress) {
    return IndentedJson(Plan(folder_, {"--json", "--schedules", "wfbp", "--collectives", "ring",
                                       "--set", "collective=double_trees", "--set", compress})
                            .out)["config"];
  };
  const json whole = config("compress=fp16");
  EXPECT_EQ(whole["collective"], "double_trees");
  EXPECT_EQ(whole["exchange"], "");
  const json selected = config("compress={name: topk, density: 0.01, exchange: gtopk}");
  EXPECT_EQ(selected["collective"], "");
  EXPECT_EQ(selected["exchange"], "gtopk");
}

// LeNet-5 in products per sample, forward; the first layer needs no gradient of its input.
TEST_F(PrintedNumbers, OfAProfileAreTheModelsAndThoseOfTheTimes) {
  const std::string file = (folder_ / "profile.json").string();
  const json times =
      IndentedJson(With("time", {"--iterations", "3", "--json", "--profile", file}).out);
  const json profile = json::parse(ReadFile(file));
  EXPECT_EQ(profile["batch"], 40);
  struct {
    const char* name;
    int64_t params;
    double flops;
  } const layers[] = {{"conv1", 156, 2 * 2 * 28. * 28 * 6 * 25},
                      {"conv2", 2416, 3 * 2 * 10. * 10 * 16 * 150},
                      {"fc1", 48120, 3 * 2 * 48000.},
                      {"fc3", 850, 3 * 2 * 840.}};
  for (const auto& layer : layers) {
    const auto found = std::ranges::find_if(
        profile["layers"], [&](const json& it) { return it["name"] == layer.name; });
    ASSERT_NE(found, profile["layers"].end()) << layer.name;
    EXPECT_EQ((*found)["params"], layer.params) << layer.name;
    EXPECT_EQ((*found)["bytes"], 4 * layer.params) << layer.name;
    EXPECT_NEAR((*found)["flops"].get<double>(), 40 * layer.flops, 1e-6) << layer.name;
  }
  // The kernels that only belong to the implementation are in the profile too, except what comes last.
  for (const char* const key : {"forward_seconds", "backward_seconds"}) {
    double measured = 0, profiled = 0, last = 0;
    for (const json& it : times["layers"]) {
      measured += it[key].get<double>();
      if (it["name"].get<std::string>().ends_with(":sum")) last += it[key].get<double>();
    }
    for (const json& it : profile["layers"]) profiled += it[key].get<double>();
    EXPECT_NEAR(profiled, measured - last, 1e-9) << key;
  }
}

TEST_F(PrintedNumbers, OfTheTableOfTimesAddUp) {
  const auto lines = WordsOfLines(With("time", {"--iterations", "3"}).out);
  double forward = 0, backward = 0;
  bool conv = false;
  for (size_t i = 1; i + 2 < lines.size(); ++i) {
    ASSERT_EQ(lines[i].size(), 5U) << lines[i][0];
    const double f = std::stod(lines[i][2]), b = std::stod(lines[i][3]);
    forward += f;
    backward += b;
    if (lines[i][0] != "conv1") continue;
    conv = true;  // 40 samples, two passes
    const double gflop = 40 * 2 * 2 * 28. * 28 * 6 * 25 * 1e-9;
    EXPECT_NEAR(std::stod(lines[i][4]) * (f + b) * 1e-3, gflop, 0.02 * gflop);
  }
  EXPECT_TRUE(conv);
  const auto& all = lines.at(lines.size() - 2);
  ASSERT_THAT(all, testing::SizeIs(4));
  EXPECT_NEAR(std::stod(all[2]), forward, 0.002);
  EXPECT_NEAR(std::stod(all[3]), backward, 0.002);
  const auto& step = lines.back();  // "step 0.4066 ms with update, 19674 samples/s"
  ASSERT_THAT(step, testing::SizeIs(7));
  EXPECT_NEAR(std::stod(step[1]) * std::stod(step[5]) / 1e3, 40, 0.5);
}

TEST_F(PrintedNumbers, OfABenchmarkFitTogether) {
  const json data = json::parse(With("bench data", {}).out);
  EXPECT_EQ(data["samples"], 240);
  EXPECT_NEAR(data["load_samples_per_second"].get<double>() * data["load_seconds"].get<double>(),
              240, 1e-6);
  EXPECT_GT(data["fill_samples_per_second"], 0);
  const json topk =
      json::parse(RunCommand({"bench", "topk", "--device", "cpu", "--sizes", "1000", "--density",
                              "0.01", "--compressors", "topk", "--seconds", "0"})
                      .out);
  EXPECT_EQ(topk["d"], 1000);
  EXPECT_EQ(topk["selected"], 10);
  const std::vector<std::string> quick = {"--batch", "8", "--seconds", "0.02"};
  std::vector<std::string> words = {"bench", "step"};
  words.insert(words.end(), quick.begin(), quick.end());
  const json step = json::parse(RunCommand(words).out);
  EXPECT_EQ(step["model"], "lenet5");
  EXPECT_NEAR(step["p50_us"].get<double>() * step["steps_per_second"].get<double>(), 1e6, 1);
  EXPECT_LE(step["min_us"], step["p50_us"]);
  words[1] = "layers";
  bool conv = false;
  for (const std::string& line : LinesOf(RunCommand(words).out)) {
    const json layer = json::parse(line);
    EXPECT_GT(layer["forward_min_us"], 0) << line;
    if (layer["layer"] == "accuracy") {
      EXPECT_EQ(layer["backward_min_us"], 0);
    }
    if (layer["layer"] != "conv1") continue;
    conv = true;
    EXPECT_GT(layer["backward_min_us"], 0);
    EXPECT_EQ(layer["type"], "convolution");
    const double gflop = 8 * 2 * 2 * 28. * 28 * 6 * 25 * 1e-9;
    EXPECT_NEAR(layer["gflop"].get<double>(), gflop, 1e-12);
    const double us =
        layer["forward_min_us"].get<double>() + layer["backward_min_us"].get<double>();
    EXPECT_NEAR(layer["gflop_s"].get<double>() * us * 1e-6, gflop, 1e-9);
  }
  EXPECT_TRUE(conv);
}

}  // namespace
}  // namespace dtrain
