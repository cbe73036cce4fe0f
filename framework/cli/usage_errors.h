// Misspelt commands, options and values, with the nearest right one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/core/error.h"

namespace CLI {
class App;
}

namespace dtrain {

// The first word of the command line, without the program's name, that names a command or option which `app` does not
// have, or else a value that is none of its option's.  None where all are right: then what is wrong is another thing.
std::optional<UsageError> FindUsageError(const CLI::App& app,
                                         const std::vector<std::string>& words);

}  // namespace dtrain
