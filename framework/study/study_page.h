// StudyPage: one HTML file with a study's verdicts, results, curves over time and samples, spread over the seeds and
// performance profiles.
#pragma once

#include <string>

#include "framework/study/study_results.h"

namespace dtrain {

std::string StudyPage(const Study& study, const StudyPlan& plan, const StudyRecords& records,
                      const StudyResults& results);

}  // namespace dtrain
