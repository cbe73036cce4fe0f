// Detects misspelt commands, options and values, and suggests the nearest valid one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/core/error.h"

namespace CLI {
class App;
}

namespace dtrain {

// Returns an error for the first word of the command line (without the program's name) that is an unknown command or
// option of `app`, or else a value that its option does not allow.  Returns nothing if all words are known; then the
// error has another cause.
std::optional<UsageError> FindUsageError(const CLI::App& app,
                                         const std::vector<std::string>& words);

}  // namespace dtrain
