// JobRecord: what a study keeps of a finished run: its numbers, and its evaluations as a curve.  It is one line of
// jobs.jsonl, so that results outlive the run folders and measures can be added later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/study/expression.h"
#include "framework/study/settings.h"

namespace dtrain {

struct JobRecord {
  // Which run it is.
  std::string id;  // hash of everything that the study and its config say of the run
  bool tuning = false;
  std::string case_name, method;
  uint64_t seed = 0;
  std::vector<Setting> tuned;  // values of the tuned keys

  // How it ended.
  int exit_code = 0;
  std::string revision;  // of the program
  std::string device;
  bool keeps_checkpoints = false;  // they stay in the run folder

  // Every number of summary.json outside of lists, by its path ("test.accuracy"); and, of all workers, `gradients`,
  // `gradients_per_second` and `wait_share`; and, of gradients.jsonl, `bound_ratio_max` and `bound_ratio_median`: what
  // the k largest entries leave of a gradient's squares, by (1 - k/d)^2, and `selected_ratio_median`: entries selected by
  // entries asked for.
  std::map<std::string, double> numbers;

  // The evaluations, in order.  Seconds are those of training, virtual in a simulation.  `values` has a list for each
  // result ("test.loss"), with NaN where an evaluation has none.
  struct Curve {
    std::vector<double> samples, seconds;
    std::map<std::string, std::vector<double>> values;
  };
  Curve curve;

  bool completed() const { return exit_code == 0; }

  // Reads what the run in the folder has left; which run it is remains empty.  Returns nothing if it has no summary.
  static std::optional<JobRecord> Read(const std::filesystem::path& folder);

  std::string ToLine() const;  // JSON, without the newline
  // Returns nothing for a line that ToLine did not write.
  static std::optional<JobRecord> FromLine(const std::string& line);

  // Returns the last result on the validation split, larger is better: the accuracy, or minus the loss; NaN for a run
  // without one.
  double ValidationScore() const;

  // Evaluates a measure.  A name is a number's path, or the last part of one; or one of
  //   seconds_to(RESULT, X), samples_to(RESULT, X)  until an evaluation found X or better; infinite if none did, or the run
  //                                                 diverged
  //   at_seconds(RESULT, T), at_samples(RESULT, N)  the last evaluation up to there
  // Returns NaN for a value that the run does not have.
  double Measure(const Expression& measure) const;
  // Throws UsageError if no measure can have this name with these arguments.
  static void CheckName(const NamedValue& named);
};

// True if a smaller value of this result is better ("test.loss", "test.perplexity").
bool SmallerIsBetter(const std::string& result);

}  // namespace dtrain
