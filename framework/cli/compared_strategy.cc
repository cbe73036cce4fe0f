#include "framework/cli/compared_strategy.h"

#include "framework/cli/setting_values.h"

namespace dtrain {

std::vector<std::string> ComparedOverrides(const std::string& given,
                                           const std::string& own_strategy,
                                           const std::string& own_compressor) {
  std::vector<std::string> overrides;
  const size_t colon = given.find(':');
  const std::string names = given.substr(0, colon);
  const size_t plus = names.find('+');
  const std::string strategy = names.substr(0, plus);
  const bool other = !strategy.empty() && strategy != own_strategy;
  if (other) overrides.push_back("strategy.name=" + strategy);
  std::string compressor = other ? "none" : own_compressor;
  if (plus != std::string::npos) compressor = names.substr(plus + 1);
  if (compressor != own_compressor) overrides.push_back("compress.name=" + compressor);
  if (colon == std::string::npos) return overrides;
  for (const std::string& key : SplitAtCommas(given.substr(colon + 1))) {
    if (key.empty()) continue;
    // Keys of the compressor are written in full.
    overrides.push_back(key.starts_with("compress.") ? key : "strategy." + key);
  }
  return overrides;
}

}  // namespace dtrain
