#include "framework/core/process.h"

#include <unistd.h>

namespace dtrain {

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::filesystem::path ProgramFile() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::filesystem::path ProgramFolder() {
  try {
    return ProgramFile().parent_path();
  } catch (const std::filesystem::filesystem_error&) {
    return {};
  }
}

std::string SourceRevision() { return DTRAIN_REVISION; }
std::string Version() { return DTRAIN_VERSION; }

}  // namespace dtrain
