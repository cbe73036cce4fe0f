#include "framework/results/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "framework/results/run_files.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::ordered_json;

ordered_json Begin(const char* kind, const MetricsPoint& at) {
  ordered_json line = {{"schema", kMetricsSchema}, {"kind", kind},
                       {"epoch", at.epoch + 1},    {"step", at.step},
                       {"samples", at.samples},    {"seconds", at.seconds}};
  if (at.training_seconds) line["training_seconds"] = *at.training_seconds;
  return line;
}

int64_t CountOf(const nlohmann::json& line, const std::string& key) {
  const auto at = line.find(key);
  return at == line.end() || !at->is_number_integer() ? 0 : at->get<int64_t>();
}

EvaluationMetrics EvaluationOf(const nlohmann::json& line, const std::vector<std::string>& others) {
  EvaluationMetrics metrics;
  metrics.at = {std::max<int64_t>(CountOf(line, "epoch") - 1, 0), CountOf(line, "step"),
                CountOf(line, "samples"), NumberIn(line, "seconds").value_or(0),
                NumberIn(line, "training_seconds")};
  metrics.loss = NumberIn(line, "loss").value_or(std::nan(""));
  metrics.accuracy = NumberIn(line, "accuracy");
  metrics.evaluate_seconds = NumberIn(line, "evaluate_seconds").value_or(0);
  for (const std::string& name : others) {
    if (const auto value = NumberIn(line, name)) metrics.others.emplace_back(name, *value);
  }
  metrics.split = TextIn(line, "split");
  metrics.perplexity = NumberIn(line, "perplexity");
  // JSON has no infinity: a null perplexity was infinite.
  if (!metrics.perplexity && line.contains("perplexity")) metrics.perplexity = HUGE_VAL;
  metrics.bleu = NumberIn(line, "bleu");
  if (line.contains("weights_step")) metrics.weights_step = CountOf(line, "weights_step");
  return metrics;
}

}  // namespace

std::vector<EvaluationMetrics> ReadEvaluations(const fs::path& path,
                                               const std::vector<std::string>& others) {
  std::vector<EvaluationMetrics> evaluations;
  ForEachLine(path, [&](const nlohmann::json& line) {
    if (TextIn(line, "kind") == "evaluation") evaluations.push_back(EvaluationOf(line, others));
  });
  return evaluations;
}

std::vector<EvaluationMetrics> EvaluationsIn(const std::vector<std::string>& lines,
                                             const std::vector<std::string>& others) {
  std::vector<EvaluationMetrics> evaluations;
  for (const std::string& line : lines) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) evaluations.push_back(EvaluationOf(json, others));
  }
  return evaluations;
}

std::string ToLine(const EvaluationMetrics& metrics) {
  ordered_json line = Begin("evaluation", metrics.at);
  if (!metrics.split.empty()) line["split"] = metrics.split;
  line["loss"] = metrics.loss;
  if (metrics.accuracy) line["accuracy"] = *metrics.accuracy;
  for (const auto& [name, value] : metrics.others) line[name] = value;
  if (metrics.perplexity) line["perplexity"] = *metrics.perplexity;
  if (metrics.bleu) line["bleu"] = *metrics.bleu;
  if (metrics.weights_step) line["weights_step"] = *metrics.weights_step;
  line["evaluate_seconds"] = metrics.evaluate_seconds;
  return JsonText(line);
}

MetricsWriter::MetricsWriter(const fs::path& path, std::optional<int64_t> resumed_step,
                             const std::vector<std::string>& evaluations)
    : lines_(path, resumed_step) {
  if (evaluations.empty() || !ReadEvaluations(path, {}).empty()) return;
  for (const std::string& line : evaluations) lines_.Write(line);
}

void MetricsWriter::Write(const StepMetrics& metrics) {
  ordered_json line = Begin("step", metrics.at);
  line["loss"] = metrics.loss;
  line["lr"] = metrics.learning_rate;
  line["samples_per_second"] = metrics.samples_per_second;
  line["exposed_seconds"] = metrics.exposed_seconds;
  lines_.Write(JsonText(line));
}

void MetricsWriter::Write(const EvaluationMetrics& metrics) { lines_.Write(ToLine(metrics)); }

void MetricsWriter::Write(const CheckpointMetrics& metrics) {
  ordered_json line = Begin("checkpoint", metrics.at);
  line["file"] = metrics.file;
  line["write_seconds"] = metrics.write_seconds;
  lines_.Write(JsonText(line));
}

}  // namespace dtrain
