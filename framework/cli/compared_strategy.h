// What a name behind `simulate --compare` changes of the config.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// "ps_ssp", "ps_ssp:staleness=5,servers=2", "gssp+gdtopk": a strategy, with a compressor behind '+'
// and keys of its own behind ':'.  The config's own strategy and compressor keep the config's keys;
// others begin with their defaults, and another strategy without a compressor.  The overrides that
// say so.
std::vector<std::string> ComparedOverrides(const std::string& given,
                                           const std::string& own_strategy,
                                           const std::string& own_compressor = "none");

}  // namespace dtrain
