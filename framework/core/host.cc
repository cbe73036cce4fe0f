#include "framework/core/host.h"

#include <unistd.h>

namespace dtrain {

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace dtrain
