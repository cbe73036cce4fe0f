#include "framework/core/program.h"

#include <unistd.h>

namespace dtrain {

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::filesystem::path ProgramFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string SourceRevision() { return DTRAIN_REVISION; }
std::string Version() { return DTRAIN_VERSION; }

}  // namespace dtrain
