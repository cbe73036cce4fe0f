// Names of the registry, for tests that walk it.
#pragma once

#include <string>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain {

// Those that choose entries, or (`casts`) those that send all in fewer bits.
inline std::vector<std::string> CompressorNames(bool casts) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::All()) {
    if (entry.make()->rounds() == casts) names.push_back(name);
  }
  return names;
}

}  // namespace dtrain
