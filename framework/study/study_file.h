// Study: a paper's experiment, read from one YAML file (configs/studies/*.yaml; configs/README.md explains its keys).
//
// Every method runs with the same terms: the config `run` with the settings of `set` and of a case.  A method adds its
// own settings, usually its strategy and compressor.  study_plan.h makes the runs of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/reader.h"
#include "framework/study/expression.h"
#include "framework/study/settings.h"

namespace dtrain {

// A method, or a case: the conditions under which all methods run.
struct NamedSettings {
  std::string name;
  std::vector<Setting> settings;
  std::string profile = {};  // of a case: path of the model profile; "": real gradients
};

std::vector<std::string> NamesOf(const std::vector<NamedSettings>& all);

// Every method runs with each combination of the values, on training samples without a share that is set aside for
// validation.  The combination with the best mean result on that share is taken for the method's other runs.
struct StudyTuning {
  std::vector<VariedSetting> keys;  // empty: nothing is tuned
  std::vector<uint64_t> seeds;      // none of the study's own
  double validation = 0;            // share of the training samples
  std::vector<Setting> set;         // of these runs alone, such as fewer epochs
};

struct StudyMeasure {
  std::string name;  // in tables, and in claims: "seconds_to"
  Expression value;  // of a run (JobRecord::Measure)
};

// Holds what a paper claims, as arithmetic of measures: "seconds_to(GSSP) / seconds_to(SSP)".  An argument after the
// method names a case; without one the claim is evaluated in every case.
struct StudyClaim {
  std::string text, paper;  // `paper`: the paper's figure
  std::optional<Expression> value;
  std::optional<double> at_least, at_most;
  std::optional<double> about;  // within the share `within`
  double within = 0;
  std::string untested;  // why it cannot be tested here; then it has no value
  std::string note;      // why it does not hold, as far as that was found
};

struct Study {
  std::string file, name;  // `name` is the file's without .yaml
  std::string title, paper, paper_says;
  std::string run;           // path of the config; "": none, for sizes only
  bool simulated = false;    // `by: simulate`
  std::vector<Setting> set;  // terms of all runs
  std::vector<uint64_t> seeds;
  StudyTuning tuning;
  std::vector<NamedSettings> cases;  // one without a name if the file has none
  std::vector<NamedSettings> methods;
  std::vector<StudyMeasure> measures;
  std::string rank_by;  // the measure of the performance profiles, smaller is better; "": none
  std::vector<StudyClaim> claims;
  std::vector<std::pair<std::string, std::string>> why;  // unequal term, the sentence that says why
  // Maps a setting's text to its place in the file, for the errors of the config that it makes.
  config::Options places;

  // True if all cases have a profile, and no run computes a gradient; else none has one.
  bool sizes_only() const { return !cases.front().profile.empty(); }
};

// Throws ConfigError with every error of the file.
Study ReadStudy(const std::string& file);

}  // namespace dtrain
