// StudyResults: the measures of a study's finished runs, and the verdict on each claim.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "framework/study/study_plan.h"

namespace dtrain {

// A measure of one method in one case, over the seeds.  A seconds_to that was not reached counts as infinite; a run
// without a value counts in `runs` only.
struct StudyCell {
  std::vector<double> values;  // of the runs that have one, ascending
  double median()
      const;  // the mean of the two in the middle of an even number; NaN without a value
  std::string Text() const;  // "0.987 [0.985, 0.988]"; "-" without a value
};

struct StudyRow {
  size_t case_index = 0, method = 0;
  std::string tuned;             // "solver.lr=0.1"
  size_t runs = 0, asked = 0;    // ended, wanted
  size_t failed = 0;             // of those that ended
  std::vector<StudyCell> cells;  // by measure
};

enum class ClaimVerdict { kHolds, kInPart, kFails, kUntested, kMissing };

struct JudgedClaim {
  const StudyClaim* claim = nullptr;
  ClaimVerdict verdict = ClaimVerdict::kMissing;
  std::string ours;    // the value, or its range over the cases
  std::string bound;   // ">= 0.7"
  std::string detail;  // "in 3 of 4 cases", "1 of 3 seeds"
};

// The performance profile of a method (Dolan and More 2002, as AlgoPerf scores it): the share of the workloads that it
// solves within tau times the best method's time.  A workload is a case with a seed.
struct PerformanceProfile {
  std::string method;
  std::vector<double> tau, share;
  double score = 0;  // the mean share for tau from 1 to 4
};

struct StudyResults {
  std::vector<StudyRow> rows;  // by case, then method
  std::vector<JudgedClaim> claims;
  std::vector<PerformanceProfile> profiles;  // empty without Study::rank_by
  std::vector<std::string> revisions;        // of the programs that made the results
  std::vector<std::string> missing;          // names of the runs that have not ended
  size_t ended = 0, asked = 0;               // result runs
};

StudyResults MakeResults(const Study& study, const StudyPlan& plan, const StudyRecords& records);

std::string TextOf(ClaimVerdict verdict);  // "holds in part"

// A number with four significant digits; "inf", "-".
std::string ShortNumber(double value);

}  // namespace dtrain
