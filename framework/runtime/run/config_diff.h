// What differs between two effective configs, key by key.
#pragma once

#include <string>

namespace dtrain {

// A line for each key that differs, of configs as Document::EffectiveYaml writes them:
//
//   seed: 1 -> 2
//   strategy.name: allreduce -> mgwfbp
//   strategy.fusion_bytes: 67108864 -> (none)
//
// The seed and the strategy come first, for they change what the run is; then the order of the
// files.  `output` is left out: where a run lies is no part of it.  "" where all are equal.
std::string ConfigDiff(const std::string& before, const std::string& now);

}  // namespace dtrain
