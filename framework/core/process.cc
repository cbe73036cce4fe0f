#include "framework/core/process.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace dtrain {

namespace fs = std::filesystem;

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

fs::path ProgramFile() { return fs::read_symlink("/proc/self/exe"); }

fs::path ProgramFolder() {
  try {
    return ProgramFile().parent_path();
  } catch (const fs::filesystem_error&) {
    return {};
  }
}

fs::path BundleFolder() {
  const fs::path folder = ProgramFolder().parent_path();
  std::error_code error;
  return fs::exists(folder / "bundle.txt", error) ? folder : fs::path();
}

fs::path SharedFolder() { return (ProgramFolder() / DTRAIN_SHARED_FOLDER).lexically_normal(); }
fs::path LibraryFolder() { return (ProgramFolder() / DTRAIN_LIBRARY_FOLDER).lexically_normal(); }

void LocateOwnMpi() {
  const fs::path bundle = BundleFolder();
  if (bundle.empty()) return;
  const std::pair<const char*, fs::path> places[] = {
      {"OPAL_PREFIX", bundle},
      {"OPAL_SYSCONFDIR", bundle / "etc"},
      {"PMIX_PKGLIBDIR", bundle / "lib/pmix"},
      {"PMIX_PKGDATADIR", bundle / "share/pmix"},
  };
  for (const auto& [name, place] : places) ::setenv(name, place.c_str(), 1);
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);  // hwloc complains if /sys is not mounted
}

std::string SourceRevision() { return DTRAIN_REVISION; }
std::string Version() { return DTRAIN_VERSION; }

std::string VersionAndRevision() {
  return SourceRevision() == "unknown" ? Version() : Version() + " (" + SourceRevision() + ")";
}

}  // namespace dtrain
