// StudyPlan: the runs of a study.  Its constructor checks that the methods are compared on equal terms.
//
// First come the tuning runs: every case and method with each combination of the tuned values.  A method's results
// follow when its tuning runs have ended, with the combination that they found best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/study/run_jobs.h"
#include "framework/study/study_file.h"
#include "framework/study/study_records.h"

namespace dtrain {

struct RunConfig;

struct StudyRun {
  bool tuning = false;
  size_t case_index = 0, method = 0;  // in Study::cases, Study::methods
  uint64_t seed = 0;
  std::vector<Setting> tuned;
  // Hash of the settings that the study, the config and the model give, but for those that say where it runs (device,
  // threads, output).  Defaults are not part of it, so that a new key leaves finished results valid; the revision of a
  // record says which program made it.
  std::string id;
  int ranks = 1;  // workers, and servers with ranks of their own
  Job job;
};

// A key of the config that is not the same for all methods of a case.
struct UnequalTerm {
  std::string key;
  std::string values;  // "SSP 1, GSSP 4", of the first case that has them unequal
  std::string why;
};

class StudyPlan {
 public:
  // Reads the configs of all methods in all cases.  Throws ConfigError for an error in one of them, and for terms that
  // are not equal and for which the study gives no reason.  `device`: that of all runs; "": the config's.
  StudyPlan(const Study& study, const std::string& output, const std::string& device);

  const std::vector<UnequalTerm>& unequal_terms() const { return unequal_; }
  const std::vector<StudyRun>& tuning_runs() const { return tuning_runs_; }

  // Returns the result runs of the methods whose tuning runs are among the records, by seed, case and method.
  std::vector<StudyRun> ResultRuns(const StudyRecords& records) const;
  // Returns the tuning runs and these, in the order of results.csv and jobs.jsonl.
  std::vector<StudyRun> AllRuns(const StudyRecords& records) const;
  // Returns the tuned values of a method, or nothing if a tuning run is missing.
  std::optional<std::vector<Setting>> TunedOf(size_t case_index, size_t method,
                                              const StudyRecords& records) const;
  // The number of result runs, those that wait for tuning included.
  size_t results() const;

 private:
  // Holds what the config of a method says in a case.
  struct MethodFacts {
    int ranks = 1;
    bool holds_out = true;  // the data set has no validation split of its own
    // Share of the epochs that a tuning run has.
    double tuning_work = 1;
    std::string
        files;  // hashes of the files that decide a run: the model, the profile, costs of the compressor
  };

  StudyRun MakeRun(bool tuning, size_t case_index, size_t method, uint64_t seed,
                   std::vector<Setting> tuned) const;
  std::vector<Setting> SettingsOf(const StudyRun& run) const;
  std::string IdOf(const std::vector<std::string>& overrides, const std::string& files) const;
  static MethodFacts FactsOf(const RunConfig& config, const std::string& profile_hash);
  void CheckConfigs();

  const Study study_;
  const std::string output_, device_, run_yaml_;
  std::vector<std::vector<MethodFacts>> facts_;  // by case and method
  std::vector<StudyRun> tuning_runs_;
  std::vector<UnequalTerm> unequal_;
};

}  // namespace dtrain
