#include "framework/cli/train_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/statistics.h"
#include "framework/core/text.h"
#include "framework/results/run_folder.h"

namespace dtrain {
namespace {

// The numbers of a seed's run; `score` is the accuracy for classes, BLEU for translations.
struct SeedResult {
  uint64_t seed;
  double loss;
  double score;
  std::string weights_sha256;
  std::string score_name;
};

SeedResult ReadResult(const std::string& output) {
  const auto json = nlohmann::json::parse(ReadFile(RunFolder(output).summary()));
  const auto& test = json.at("test");
  const std::string name = test.contains("bleu") ? "bleu" : "accuracy";
  return {json.at("seed"), test.at("loss"), test.value(name, 0.0), json.at("weights_sha256"), name};
}

Moments MomentsOf(const std::vector<SeedResult>& results, double SeedResult::*member) {
  std::vector<double> values;
  for (const SeedResult& result : results) values.push_back(result.*member);
  return dtrain::MomentsOf(values);
}

}  // namespace

void PrintTrainResult(std::ostream& out, const Summary& summary, const std::string& output,
                      bool json) {
  if (json) {
    out << ToJson(summary);
    return;
  }
  out << fmt::format("{} after {:.1f} epochs in {} ({:.0f} samples/s)\n", summary.status,
                     summary.epochs, HumanSeconds(summary.seconds), summary.samples_per_second);
  if (summary.test) out << TestText(*summary.test) << '\n';
  if (summary.target) out << TargetText(summary) << '\n';
  out << fmt::format("weights {}\nresults {}\n", summary.weights_sha256, output);
}

void PrintFinishedRun(std::ostream& out, const std::string& output, bool json) {
  out << (json ? ReadFile(RunFolder(output).summary())
               : fmt::format("completed before; nothing to do\nresults {}\n", output));
}

void PrintSeedTable(std::ostream& out, const std::vector<std::string>& outputs, bool json) {
  std::vector<SeedResult> results;
  for (const std::string& output : outputs) results.push_back(ReadResult(output));
  const Moments loss = MomentsOf(results, &SeedResult::loss);
  const Moments score = MomentsOf(results, &SeedResult::score);
  const std::string name = results.empty() ? "accuracy" : results[0].score_name;
  if (json) {
    nlohmann::json table;
    for (const SeedResult& r : results) {
      table["runs"].push_back({{"seed", r.seed},
                               {"loss", r.loss},
                               {name, r.score},
                               {"weights_sha256", r.weights_sha256}});
    }
    table["loss"] = {{"mean", loss.mean}, {"deviation", loss.deviation}};
    table[name] = {{"mean", score.mean}, {"deviation", score.deviation}};
    out << JsonText(table, 2) << '\n';
    return;
  }
  const bool percent = name == "accuracy";
  const auto shown = [percent](double value) {
    return percent ? fmt::format("{:>8.2f} %", 100 * value) : fmt::format("{:>10.2f}", value);
  };
  out << fmt::format("{:>8}  {:>10}  {:>10}  weights\n", "seed", "loss", name);
  for (const SeedResult& r : results) {
    out << fmt::format("{:>8}  {:>10.4f}  {}  {}\n", r.seed, r.loss, shown(r.score),
                       r.weights_sha256.substr(0, 12));
  }
  out << fmt::format("{:>8}  {:>10.4f}  {}\n", "mean", loss.mean, shown(score.mean));
  out << fmt::format("{:>8}  {:>10.4f}  {}\n", "+/-", loss.deviation, shown(score.deviation));
}

}  // namespace dtrain
