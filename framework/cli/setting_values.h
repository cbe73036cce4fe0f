// What the command line says of many runs: lists of values ("1,2", "[1,2],[1,4]") and strategies to
// compare ("gssp+gdtopk").
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// The parts of `text` between commas that stand in no bracket and in no quotes, without the blanks
// around them.
std::vector<std::string> SplitAtCommas(const std::string& text);

// One of a setting's values, or of several: "seed", "1".
struct Setting {
  std::string key;
  std::string value;

  std::string text() const { return key + "=" + value; }
  friend bool operator==(const Setting&, const Setting&) = default;
};

// A setting and the values that it takes one after the other.
struct VariedSetting {
  std::string key;
  std::vector<std::string> values;
};

// "seed=1,2,3".  Throws UsageError where there is no '=', a key is given twice, or a value stands
// between two commas that is none.
std::vector<VariedSetting> ReadVariedSettings(const std::vector<std::string>& arguments);

// Every combination of the values, the last setting varying fastest.  One, without settings.
std::vector<std::vector<Setting>> Combinations(const std::vector<VariedSetting>& settings);

// Those settings of a combination that have several values: "solver.lr=0.1,seed=2".
std::vector<Setting> VariedOf(const std::vector<Setting>& combination,
                              const std::vector<VariedSetting>& settings);

// A folder's name for settings: letters, digits and ".,=_+-" stay, other characters become '_'.
// "run" for none.
std::string FolderNameOf(const std::vector<Setting>& settings);

// What a name behind `simulate --compare` changes of the config:
// "ps_ssp", "ps_ssp:staleness=5,servers=2", "gssp+gdtopk": a strategy, with a compressor behind '+'
// and keys of its own behind ':'.  The config's own strategy and compressor keep the config's keys;
// others begin with their defaults, and another strategy without a compressor.  The overrides that
// say so.
std::vector<std::string> ComparedOverrides(const std::string& given,
                                           const std::string& own_strategy,
                                           const std::string& own_compressor = "none");

}  // namespace dtrain
