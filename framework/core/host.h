// The name of this machine, as the system tells it.
#pragma once

#include <string>

namespace dtrain {

std::string HostName();

}  // namespace dtrain
