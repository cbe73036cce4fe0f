#include "framework/strategies/strategy.h"

namespace dtrain {

std::vector<std::string> CompressorsOf(const Strategy& strategy) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::All()) {
    if (strategy.Takes(*entry.make())) names.push_back(name);
  }
  return names;
}

std::vector<std::string> StrategiesOf(const std::string& compressor) {
  const std::unique_ptr<Compressor> made = CompressorRegistry::Get("compressor", compressor).make();
  std::vector<std::string> names;
  for (const auto& [name, entry] : StrategyRegistry::All()) {
    if (entry.make()->Takes(*made)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> StrategiesThatOutliveWorkers() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : StrategyRegistry::All()) {
    const std::unique_ptr<Strategy> strategy = entry.make();
    config::Document defaults = config::Document::Empty();
    config::Reader reader = defaults.root().Section("strategy");
    strategy->Configure(reader);
    if (strategy->StopsAtDeath().empty()) names.push_back(name);
  }
  return names;
}

}  // namespace dtrain
