#include "framework/runtime/results/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::ordered_json;

ordered_json Begin(const char* kind, const MetricsPoint& at) {
  ordered_json line = {{"kind", kind},
                       {"epoch", at.epoch},
                       {"step", at.step},
                       {"samples", at.samples},
                       {"seconds", at.seconds}};
  if (at.training_seconds) line["training_seconds"] = *at.training_seconds;
  return line;
}

// Lines up to `step`.  A run that was killed may have left half a line at the end.
std::string KeepUpTo(const std::string& content, int64_t step) {
  std::istringstream lines(content);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto at = json.find("step");
    if (at == json.end() || !at->is_number_integer()) continue;
    if (at->get<int64_t>() <= step) kept += line + "\n";
  }
  return kept;
}

// nullopt when the key is null or missing.
std::optional<double> NumberOf(const nlohmann::json& line, const std::string& key) {
  const auto at = line.find(key);
  if (at == line.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

int64_t CountOf(const nlohmann::json& line, const std::string& key) {
  const auto at = line.find(key);
  return at == line.end() || !at->is_number_integer() ? 0 : at->get<int64_t>();
}

EvaluationMetrics EvaluationOf(const nlohmann::json& line, const std::vector<std::string>& others) {
  EvaluationMetrics metrics;
  metrics.at = {CountOf(line, "epoch"), CountOf(line, "step"), CountOf(line, "samples"),
                NumberOf(line, "seconds").value_or(0), NumberOf(line, "training_seconds")};
  metrics.loss = NumberOf(line, "loss").value_or(std::nan(""));
  metrics.accuracy = NumberOf(line, "accuracy");
  metrics.evaluate_seconds = NumberOf(line, "evaluate_seconds").value_or(0);
  for (const std::string& name : others) {
    if (const auto value = NumberOf(line, name)) metrics.others.emplace_back(name, *value);
  }
  const auto split = line.find("split");
  if (split != line.end() && split->is_string()) metrics.split = split->get<std::string>();
  metrics.perplexity = NumberOf(line, "perplexity");
  metrics.bleu = NumberOf(line, "bleu");
  return metrics;
}

[[noreturn]] void ThrowErrno(const fs::path& path) {
  throw RunFileError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

std::vector<EvaluationMetrics> ReadEvaluations(const fs::path& path,
                                               const std::vector<std::string>& others) {
  std::vector<EvaluationMetrics> evaluations;
  if (!fs::exists(path)) return evaluations;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("kind", nlohmann::json()) != "evaluation") continue;
    evaluations.push_back(EvaluationOf(json, others));
  }
  return evaluations;
}

double ReadTrainingSeconds(const fs::path& path) {
  double seconds = 0;
  if (!fs::exists(path)) return seconds;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) seconds = NumberOf(json, "training_seconds").value_or(seconds);
  }
  return seconds;
}

MetricsWriter::MetricsWriter(const fs::path& path, std::optional<int64_t> resumed_step)
    : path_(path) {
  if (resumed_step && fs::exists(path)) {
    WriteFileDurably(path, KeepUpTo(ReadFile(path), *resumed_step));
  }
  const int fresh = resumed_step ? 0 : O_TRUNC;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | fresh, 0644);
  if (fd_ < 0) ThrowErrno(path_);
}

MetricsWriter::~MetricsWriter() { ::close(fd_); }

void MetricsWriter::Write(const StepMetrics& metrics) {
  ordered_json line = Begin("step", metrics.at);
  line["loss"] = metrics.loss;
  line["lr"] = metrics.learning_rate;
  line["samples_per_second"] = metrics.samples_per_second;
  line["exposed_seconds"] = metrics.exposed_seconds;
  WriteLine(line.dump());
}

void MetricsWriter::Write(const EvaluationMetrics& metrics) {
  ordered_json line = Begin("evaluation", metrics.at);
  if (!metrics.split.empty()) line["split"] = metrics.split;
  line["loss"] = metrics.loss;
  if (metrics.accuracy) line["accuracy"] = *metrics.accuracy;
  for (const auto& [name, value] : metrics.others) line[name] = value;
  if (metrics.perplexity) line["perplexity"] = *metrics.perplexity;
  if (metrics.bleu) line["bleu"] = *metrics.bleu;
  line["evaluate_seconds"] = metrics.evaluate_seconds;
  WriteLine(line.dump());
}

void MetricsWriter::Write(const CheckpointMetrics& metrics) {
  ordered_json line = Begin("checkpoint", metrics.at);
  line["file"] = metrics.file;
  line["write_seconds"] = metrics.write_seconds;
  WriteLine(line.dump());
}

void MetricsWriter::WriteLine(const std::string& line) {
  std::string text = line + "\n";
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno(path_);
    text.erase(0, static_cast<size_t>(written));
  }
}

}  // namespace dtrain
