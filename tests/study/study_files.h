// Study files and records for tests, in a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "framework/study/study_plan.h"
#include "tests/data/temp_folder.h"

namespace dtrain {

class StudyTest : public testing::Test {
 protected:
  // Writes a study of two methods; `more` are its further keys.
  std::string Write(const std::string& more, const std::string& methods =
                                                 "  A: {strategy.name: ps_ssp}\n"
                                                 "  B: {strategy.name: ps_bsp}\n") const {
    const std::string file = folder_.path() / "two.yaml";
    std::ofstream(file) << "run: quickstart\nmeasure: [test.accuracy]\nmethods:\n"
                        << methods << more;
    return file;
  }
  Study Read(const std::string& more) const { return ReadStudy(Write(more)); }
  StudyPlan Plan(const Study& study) const { return {study, folder_.path() / "out", ""}; }

  // Returns the record of a run that found this accuracy after each of ten evaluations, a virtual second apart.
  static JobRecord Record(const StudyRun& run, const std::vector<double>& accuracies) {
    JobRecord record;
    record.id = run.id;
    record.seed = run.seed;
    record.numbers["test.accuracy"] = accuracies.back();
    for (size_t i = 0; i < accuracies.size(); ++i) {
      record.curve.samples.push_back(100.0 * static_cast<double>(i + 1));
      record.curve.seconds.push_back(static_cast<double>(i + 1));
    }
    record.curve.values[run.tuning ? "validation.accuracy" : "test.accuracy"] = accuracies;
    return record;
  }

  const TempFolder folder_;
};

}  // namespace dtrain
