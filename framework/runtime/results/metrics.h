// metrics.jsonl: one JSON object a line, as a run goes on.
//
//   {"kind":"step","epoch":1,"step":20,"samples":1280,"seconds":0.31,"loss":2.1,"lr":0.01,...}
//   {"kind":"evaluation","epoch":2,"step":938,...,"loss":0.05,"accuracy":0.984,"top5":0.999}
//   {"kind":"evaluation",...,"split":"validation","loss":3.4,"perplexity":29.9}
//   {"kind":"checkpoint","epoch":2,"step":938,...,"file":"step-00000938.h5","write_seconds":0.01}
//
// `seconds` counts from the start or the resume, evaluations and checkpoints included;
// `training_seconds` from the start, without them.  NaN and infinity are null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/results/json_lines.h"

namespace dtrain {

// Where a line belongs.
struct MetricsPoint {
  int64_t epoch = 0;    // the epoch being trained, counted from 0
  int64_t step = 0;     // finished steps
  int64_t samples = 0;  // applied so far
  double seconds = 0;
  // Without evaluations and checkpoints, and with the time before a resume; virtual time in a
  // simulated run.
  std::optional<double> training_seconds = {};
};

struct StepMetrics {
  MetricsPoint at;
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
  double exposed_seconds = 0;  // of this step: communication that compute waited for
};

struct EvaluationMetrics {
  MetricsPoint at;
  double loss = 0;
  std::optional<double> accuracy;
  double evaluate_seconds = 0;
  std::vector<std::pair<std::string, double>> others;  // the model's further metrics: "top5"
  std::string split;  // "validation", "test" of a set that has both; else empty
  std::optional<double> perplexity;
  std::optional<double> bleu;
};

struct CheckpointMetrics {
  MetricsPoint at;
  std::string file;
  double write_seconds = 0;
};

// The evaluations in a metrics.jsonl, in its order; none where there is no file.  `others`: the
// names of the model's metrics behind the first.
std::vector<EvaluationMetrics> ReadEvaluations(const std::filesystem::path& path,
                                               const std::vector<std::string>& others);

// The training seconds of the last line of a metrics.jsonl that tells them; 0 where none does.
double ReadTrainingSeconds(const std::filesystem::path& path);

// Rank 0 has one.
class MetricsWriter {
 public:
  // As JsonLines.
  explicit MetricsWriter(const std::filesystem::path& path,
                         std::optional<int64_t> resumed_step = std::nullopt)
      : lines_(path, resumed_step) {}

  // Throw RunFileError when the disk does not take the line.
  void Write(const StepMetrics& metrics);
  void Write(const EvaluationMetrics& metrics);
  void Write(const CheckpointMetrics& metrics);

 private:
  JsonLines lines_;
};

}  // namespace dtrain
