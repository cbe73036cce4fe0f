// Which source this program was built from.
#pragma once

#include <string>

namespace dtrain {

std::string SourceRevision();  // git's short commit, with "+" after uncommitted changes; "unknown"
std::string Version();         // "0.1.0"

}  // namespace dtrain
