// metrics.jsonl: one JSON object a line, written while a run goes on.
//
//   {"schema":1,"kind":"step","epoch":1,"step":20,"samples":1280,"seconds":0.31,"loss":2.1,...}
//   {"schema":1,"kind":"evaluation","epoch":2,"step":938,...,"loss":0.05,"accuracy":0.984}
//   {"schema":1,"kind":"evaluation",...,"split":"validation","loss":3.4,"perplexity":29.9}
//   {"schema":1,"kind":"checkpoint","step":938,...,"file":"step-00000938.h5","write_seconds":0.01}
//
// Every line contains its schema, so that each line can be read by itself, in a truncated or concatenated file too.
// `seconds` and `training_seconds` count from the start of the run, over resumes; `seconds` includes evaluations and
// checkpoints, `training_seconds` does not.  NaN and infinity are written as null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/results/json_lines.h"

namespace dtrain {

// The version of a line's keys.
inline constexpr int kMetricsSchema = 1;

// The position in the run that a line belongs to.
struct MetricsPoint {
  int64_t epoch = 0;    // the epoch being trained, counted from 0
  int64_t step = 0;     // finished steps
  int64_t samples = 0;  // applied so far
  double seconds = 0;
  // Seconds of training without evaluations and checkpoints, including the time before a resume; virtual in a simulated
  // run.
  std::optional<double> training_seconds = {};
};

struct StepMetrics {
  MetricsPoint at;
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
  double exposed_seconds = 0;  // of this step: communication time that compute waited for
};

struct EvaluationMetrics {
  MetricsPoint at;
  double loss = 0;
  std::optional<double> accuracy;
  double evaluate_seconds = 0;
  std::vector<std::pair<std::string, double>> others;  // the model's further metrics: "top5"
  // "validation" or "test" for a data set that has both; otherwise empty.
  std::string split;
  std::optional<double> perplexity;
  std::optional<double> bleu;
  // Holds the step of the evaluated weights if they are not the current ones.
  std::optional<int64_t> weights_step = {};
};

struct CheckpointMetrics {
  MetricsPoint at;
  std::string file;
  double write_seconds = 0;
};

// Returns the line for metrics.jsonl, without the newline.
std::string ToLine(const EvaluationMetrics& metrics);

// Returns the evaluations in a metrics.jsonl, in file order; empty if there is no file.  `others` are the names of the
// model's metrics after the first.
std::vector<EvaluationMetrics> ReadEvaluations(const std::filesystem::path& path,
                                               const std::vector<std::string>& others);
// Returns the evaluations in lines made by ToLine; skips other lines.
std::vector<EvaluationMetrics> EvaluationsIn(const std::vector<std::string>& lines,
                                             const std::vector<std::string>& others);

// Writes metrics.jsonl; only rank 0 has a writer.
class MetricsWriter {
 public:
  // Opens the file as JsonLines does.  If the file has no evaluations, it begins with `evaluations`, the lines from
  // before a resume.  That is the case for a run that resumes into another folder than its checkpoint's: its file is
  // new, and `resumed_step` is not set.
  explicit MetricsWriter(const std::filesystem::path& path,
                         std::optional<int64_t> resumed_step = std::nullopt,
                         const std::vector<std::string>& evaluations = {});

  // Throw RunFileError if the disk does not take the line.
  void Write(const StepMetrics& metrics);
  void Write(const EvaluationMetrics& metrics);
  void Write(const CheckpointMetrics& metrics);

 private:
  JsonLines lines_;
};

}  // namespace dtrain
