// The files that a study writes beside its page: results.csv, table.md, table.tex.
#pragma once

#include <string>

#include "framework/study/study_results.h"

namespace dtrain {

// Returns one line for each of the runs (StudyPlan::AllRuns) that has ended: phase, case, method, seed, tuned values, exit code, every measure,
// revision, device, id.
std::string ResultsCsv(const Study& study, const std::vector<StudyRun>& runs,
                       const StudyRecords& records);

// Returns claims with their verdicts, results, terms that are not equal, and what is missing.
std::string MarkdownTable(const Study& study, const StudyPlan& plan, const StudyResults& results);
std::string LatexTable(const Study& study, const StudyResults& results);  // needs booktabs

}  // namespace dtrain
