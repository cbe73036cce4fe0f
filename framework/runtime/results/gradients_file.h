// gradients.jsonl: what a GradientStatistics has seen, one JSON object a record.
//
//   {"schema":1,"step":200,"worker":0,"begin":0,"end":61706,"gradient":H,"from":H,"density":0.01,
//    "asked":617,"selected":617,"error":0.61,"error_of_largest":0.61,"bound":0.99,"bound_squared":0.9801}
//
// H is a histogram: {"squares":1.7e-3,"zeros":12,"exponent":-31,"negative":[...],"positive":[...]}, where
// entry i of the lists counts values with 2^(exponent+i) <= |x| < 2^(exponent+i+1), and "zeros" those
// below 2^-126; "not_finite" is there where there are NaN or infinities.  `bound` is 1 - k/d, k = asked,
// d = end - begin.  A step that was sent whole has no keys behind "gradient".  NaN is null.
//
// A step is the worker's own; all records of a step stand together.  There is nothing of time in a
// record: a real run's are those of its numeric simulation.
#pragma once

#include <filesystem>
#include <memory>

#include "framework/exchange/gradient_statistics.h"
#include "framework/runtime/results/json_lines.h"

namespace dtrain {

// The version of the keys of a line; lines of older programs do not say it.
inline constexpr int kGradientsSchema = 1;

class GradientsFile : public GradientStatistics::Sink {
 public:
  explicit GradientsFile(std::filesystem::path path) : path_(std::move(path)) {}
  // BeginBehind keeps no line: those that lie there are another run's.
  void KeepNoLines() { keeps_lines_ = false; }
  // Both throw RunFileError.
  void BeginBehind(int64_t steps) override;
  void Write(const GradientRecord& record) override;

 private:
  const std::filesystem::path path_;
  bool keeps_lines_ = true;
  std::unique_ptr<JsonLines> lines_;
};

// A study of worker 0 with its file, for the rank where that worker lives.
struct StatisticsWithFile {
  StatisticsWithFile(int64_t every, std::filesystem::path path)
      : file(std::move(path)), statistics(every, file) {}
  GradientsFile file;
  GradientStatistics statistics;
};

}  // namespace dtrain
