// Lists the differences of two effective configs, key by key.
#pragma once

#include <string>

namespace dtrain {

// Returns a line for each key that differs.  Both configs are as Document::EffectiveYaml writes them:
//
//   seed: 1 -> 2
//   strategy.name: allreduce -> mgwfbp
//   strategy.fusion_bytes: 67108864 -> (none)
//
// The seed and the strategy come first, since they change the run most; the other keys follow in the order of the
// files. `output` is left out: the run folder does not change the run.  Returns "" if all keys are equal.
std::string ConfigDiff(const std::string& before, const std::string& now);

}  // namespace dtrain
