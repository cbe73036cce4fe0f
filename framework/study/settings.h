// Command line arguments that describe many runs: lists of values ("1,2", "[1,2],[1,4]") and strategies to compare
// ("gssp+gdtopk").
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Splits `text` at the commas that are outside of brackets and quotes.  The parts are stripped of blanks.
std::vector<std::string> SplitAtCommas(const std::string& text);

// Holds a key with one value: "seed", "1".
struct Setting {
  std::string key;
  std::string value;

  std::string text() const { return key + "=" + value; }
  friend bool operator==(const Setting&, const Setting&) = default;
};

// Holds a key with all the values that a sweep gives it, in order.
struct VariedSetting {
  std::string key;
  std::vector<std::string> values;
};

// Reads arguments of the form "seed=1,2,3".  Throws UsageError if '=' is missing, a key is given twice, or an element
// of a list is empty.
std::vector<VariedSetting> ReadVariedSettings(const std::vector<std::string>& arguments);

// Returns every combination of the values; the last setting varies fastest.  Without settings there is one, the empty
// combination.
std::vector<std::vector<Setting>> Combinations(const std::vector<VariedSetting>& settings);

// Returns the settings of a combination that have several values in `settings`: "solver.lr=0.1,seed=2".
std::vector<Setting> VariedOf(const std::vector<Setting>& combination,
                              const std::vector<VariedSetting>& settings);

// Returns {"solver.lr=0.1", "seed=2"}.
std::vector<std::string> TextsOf(const std::vector<Setting>& settings);

// Returns a folder name for the settings: letters, digits and ".,=_+-" stay, other characters become '_'.  The name is
// "run" if there are no settings.
std::string FolderNameOf(const std::vector<Setting>& settings);
std::string FolderNameFor(const std::string& text);  // the same for any text

// Returns the overrides of the config that an entry of `simulate --compare` stands for.  An entry is a strategy,
// optionally followed by '+' and a compressor; each may have keys of its own after ':'.  Examples: "ps_ssp",
// "ps_ssp:staleness=5,servers=2", "gssp+gdtopk".  The config's own strategy and compressor keep the config's keys.
// Other ones begin with their defaults, and another strategy begins without a compressor.
std::vector<std::string> ComparedOverrides(const std::string& given,
                                           const std::string& own_strategy,
                                           const std::string& own_compressor = "none");

}  // namespace dtrain
