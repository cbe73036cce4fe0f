// Names of the registered compressors, for tests that run all of them.
#pragma once

#include <string>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain {

// Returns the compressors that select entries or, with `casts`, those that send all values in fewer bits.
inline std::vector<std::string> CompressorNames(bool casts) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::All()) {
    const auto compressor = entry.make();
    if (casts ? compressor->rounds() : compressor->sends_entries()) names.push_back(name);
  }
  return names;
}

}  // namespace dtrain
