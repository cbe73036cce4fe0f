// gradients.jsonl: the records of GradientStatistics, one JSON object a line.
//
//   {"schema":1,"step":200,"worker":0,"begin":0,"end":61706,"gradient":H,"from":H,"density":0.01,
//    "asked":617,"selected":617,"error":0.61,"error_of_largest":0.61,"bound":0.99,"bound_squared":0.9801}
//
// H is a histogram: {"squares":1.7e-3,"zeros":12,"exponent":-31,"negative":[...],"positive":[...]}.  Entry i of the
// lists counts the values with 2^(exponent+i) <= |x| < 2^(exponent+i+1); "zeros" counts those below 2^-126.
// "not_finite" is present only if there are NaN or infinities.  `bound` is 1 - k/d with k = asked and d = end - begin.
// The keys after "gradient" are absent for a step whose gradient was sent in full.  NaN is written as null.
//
// `step` counts the worker's own steps.  All records of a step are adjacent.  Records contain no times, so a real run
// and its numeric simulation write equal records.
#pragma once

#include <filesystem>
#include <memory>

#include "framework/exchange/gradient_statistics.h"
#include "framework/results/json_lines.h"

namespace dtrain {

// The version of a line's keys.
inline constexpr int kGradientsSchema = 1;

class GradientsFile : public GradientStatistics::Sink {
 public:
  explicit GradientsFile(std::filesystem::path path) : path_(std::move(path)) {}
  // After this call BeginBehind keeps no line: existing lines belong to another run.
  void KeepNoLines() { keeps_lines_ = false; }
  // Both throw RunFileError.
  void BeginBehind(int64_t steps) override;
  void Write(const GradientRecord& record) override;

 private:
  const std::filesystem::path path_;
  bool keeps_lines_ = true;
  std::unique_ptr<JsonLines> lines_;
};

// Holds the gradient statistics of worker 0 with their file, for the rank on which that worker runs.
struct StatisticsWithFile {
  StatisticsWithFile(int64_t every, std::filesystem::path path)
      : file(std::move(path)), statistics(every, file) {}
  GradientsFile file;
  GradientStatistics statistics;
};

}  // namespace dtrain
