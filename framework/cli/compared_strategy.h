// What a name behind `simulate --compare` changes of the config.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// "ps_ssp", "ps_ssp:staleness=5,servers=2", "gssp+gdtopk": a strategy, with a compressor behind '+'
// and keys of its own behind ':'.  A strategy that is `own` keeps the config's keys, another one
// begins with its defaults.  The overrides that say so.
std::vector<std::string> ComparedOverrides(const std::string& given, const std::string& own);

}  // namespace dtrain
