// StudyResults: the measures of a study's finished runs, and the verdict on each claim.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "framework/study/study_plan.h"

namespace dtrain {

// A measure of one method in one case, over the seeds.  A seconds_to that was not reached counts as infinite.  A run
// that diverged has no value, but as infinite ones of seconds_to and of Study::rank_by.
struct StudyCell {
  std::vector<double> values;  // of the runs that have one, ascending
  double median()
      const;      // the mean of the two in the middle of an even number; NaN without a value
  size_t of = 0;  // runs that have ended
  // Returns "0.987 [0.985, 0.988]", with " (2 of 3)" if a run has no value; "-" if none has one.
  std::string Text() const;
};

struct StudyRow {
  size_t case_index = 0, method = 0;
  std::string tuned;             // "solver.lr=0.1"
  size_t runs = 0, asked = 0;    // ended, wanted
  size_t failed = 0;             // of those that ended
  std::vector<StudyCell> cells;  // by measure
};

enum class ClaimVerdict { kHolds, kInPart, kFails, kUntested, kMissing };

struct ClaimResult {
  const StudyClaim* claim = nullptr;
  ClaimVerdict verdict = ClaimVerdict::kMissing;
  bool so_far = false;  // runs that it is about are missing
  std::string ours;     // the value, or its range over the cases
  std::string bound;    // ">= 0.7"
  std::string detail;   // "in 3 of 4 cases", "1 of 3 runs"

  std::string Text() const;  // "holds so far"
};

// The performance profile of a method (Dolan and More 2002, as AlgoPerf scores it): the share of the workloads that it
// solves within tau times the best method's time.  A workload is a case with a seed that every method has run; one that
// no method solved counts, too.
struct PerformanceProfile {
  std::string method;
  std::vector<double> tau, share;
  double score = 0;  // the mean share for tau from 1 to 4
};

struct StudyResults {
  std::vector<StudyRow> rows;  // by case, then method
  std::vector<ClaimResult> claims;
  std::vector<PerformanceProfile> profiles;  // empty without Study::rank_by
  std::vector<std::string> revisions;        // of the programs that made the results
  std::vector<std::string> missing;          // names of the runs that have not ended
  size_t ended = 0, asked = 0;               // result runs
};

StudyResults MakeResults(const Study& study, const StudyPlan& plan, const StudyRecords& records);

// A number with four significant digits; "inf", "-".
std::string ShortNumber(double value);

}  // namespace dtrain
