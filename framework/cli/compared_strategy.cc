#include "framework/cli/compared_strategy.h"

#include "framework/cli/setting_values.h"

namespace dtrain {

std::vector<std::string> ComparedOverrides(const std::string& given, const std::string& own) {
  std::vector<std::string> overrides;
  const size_t colon = given.find(':');
  const std::string names = given.substr(0, colon);
  const size_t plus = names.find('+');
  const std::string strategy = names.substr(0, plus);
  if (!strategy.empty() && strategy != own) overrides.push_back("strategy.name=" + strategy);
  if (plus != std::string::npos) overrides.push_back("compress.name=" + names.substr(plus + 1));
  if (colon == std::string::npos) return overrides;
  for (const std::string& key : SplitAtCommas(given.substr(colon + 1))) {
    if (key.empty()) continue;
    // Keys of the compressor are written in full.
    overrides.push_back(key.starts_with("compress.") ? key : "strategy." + key);
  }
  return overrides;
}

}  // namespace dtrain
