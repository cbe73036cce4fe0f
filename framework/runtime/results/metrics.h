// metrics.jsonl: one JSON object a line, as a run goes on.
//
//   {"schema":1,"kind":"step","epoch":1,"step":20,"samples":1280,"seconds":0.31,"loss":2.1,...}
//   {"schema":1,"kind":"evaluation","epoch":2,"step":938,...,"loss":0.05,"accuracy":0.984}
//   {"schema":1,"kind":"evaluation",...,"split":"validation","loss":3.4,"perplexity":29.9}
//   {"schema":1,"kind":"checkpoint","step":938,...,"file":"step-00000938.h5","write_seconds":0.01}
//
// Every line says its schema, so that a file stays readable line by line, cut off or joined with
// others, and is a table with one column more, not one row.  `seconds` and `training_seconds` count
// from the start of the run, over resumes: the one with evaluations and checkpoints, the other
// without.  NaN and infinity are null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/results/json_lines.h"

namespace dtrain {

// The version of the keys of a line; lines of older programs do not say it.
inline constexpr int kMetricsSchema = 1;

// MetricsPoint tells where a line belongs.
struct MetricsPoint {
  int64_t epoch = 0;    // the epoch being trained, counted from 0
  int64_t step = 0;     // finished steps
  int64_t samples = 0;  // applied so far
  double seconds = 0;
  // The time without evaluations and checkpoints, and with the time before a resume; it is virtual in a simulated run.
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
  std::optional<int64_t> weights_step = {};  // whose weights it is of, where they are not the last
};

struct CheckpointMetrics {
  MetricsPoint at;
  std::string file;
  double write_seconds = 0;
};

// The line of metrics.jsonl, without its end.
std::string ToLine(const EvaluationMetrics& metrics);

// The evaluations in a metrics.jsonl, in its order; none where there is no file.  `others`: the
// names of the model's metrics behind the first.
std::vector<EvaluationMetrics> ReadEvaluations(const std::filesystem::path& path,
                                               const std::vector<std::string>& others);
// Reads them from lines that ToLine has made, and leaves out what is no such line.
std::vector<EvaluationMetrics> EvaluationsIn(const std::vector<std::string>& lines,
                                             const std::vector<std::string>& others);

// MetricsEnd tells how far a metrics.jsonl goes: the last of each that its lines tell, 0 or none where none does.
struct MetricsEnd {
  double seconds = 0;
  double training_seconds = 0;
  std::optional<double> loss;  // of a step
};
MetricsEnd ReadMetricsEnd(const std::filesystem::path& path);

// Rank 0 has one.
class MetricsWriter {
 public:
  // Opens the file as JsonLines does.  A file without evaluations begins with `evaluations`, lines from before a
  // resume: that of a run which goes on in another folder than its checkpoint's is begun anew, without
  // `resumed_step`.
  explicit MetricsWriter(const std::filesystem::path& path,
                         std::optional<int64_t> resumed_step = std::nullopt,
                         const std::vector<std::string>& evaluations = {});

  // Throw RunFileError when the disk does not take the line.
  void Write(const StepMetrics& metrics);
  void Write(const EvaluationMetrics& metrics);
  void Write(const CheckpointMetrics& metrics);

 private:
  JsonLines lines_;
};

}  // namespace dtrain
