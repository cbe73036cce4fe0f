#include "framework/device/cuda/open_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

namespace dtrain {
namespace fs = std::filesystem;
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<fs::path> PartsOf(const std::string& list) {
  std::vector<fs::path> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ':');) {
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

// Returns the subfolders in a fixed order; empty if there is no such folder.
std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Adds packages/nvidia/cu13/lib, packages/nvidia/cudnn/lib, packages/nvidia/cublas/lib, ...
void AddPackages(const fs::path& packages, std::vector<fs::path>& folders) {
  std::error_code error;
  for (const fs::path& package : FoldersIn(packages / "nvidia")) {
    if (fs::is_directory(package / "lib", error)) folders.push_back(package / "lib");
  }
}

// Adds prefix/lib/python3.11/site-packages, prefix/lib/python3/dist-packages, ...
void AddPython(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const char* const lib : {"lib", "lib64"}) {
    for (const fs::path& python : FoldersIn(prefix / lib)) {
      if (!python.filename().string().starts_with("python3")) continue;
      AddPackages(python / "site-packages", folders);
      AddPackages(python / "dist-packages", folders);
    }
  }
}

// Returns the library that dlopen did not find; "" if the error is another one.
std::string MissingOf(const std::string& error) {
  const size_t colon = error.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : error.substr(0, colon);
}

// Opens a library, searching each folder for missing dependencies, which may have missing dependencies themselves.
class Opener {
 public:
  OpenedLibrary Open(const fs::path& file, int flags) {
    while (true) {
      if (void* const handle = ::dlopen(file.c_str(), flags)) return {.handle = handle};
      OpenedLibrary result{.error = ::dlerror()};
      result.missing = MissingOf(result.error);
      if (result.missing.empty() || !tried_.insert(result.missing).second) return result;
      const OpenedLibrary found = OpenMissing(result.missing);
      if (found.handle == nullptr) return found.error.empty() ? result : found;
    }
  }

 private:
  OpenedLibrary OpenMissing(const std::string& name) {
    OpenedLibrary last;
    std::error_code error;
    for (const fs::path& folder : folders_) {
      if (last.handle == nullptr && fs::exists(folder / name, error)) {
        last = Open(folder / name, RTLD_NOW | RTLD_GLOBAL);
      }
    }
    if (name.starts_with("libcudnn.so") && last.handle != nullptr) OpenNvrtc();
    return last;
  }

  // cuDNN compiles kernels with NVRTC.  It loads NVRTC by name, and does without it if the loader does not find it.
  void OpenNvrtc() const {
    for (const fs::path& folder : folders_) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (!entry.path().filename().string().starts_with("libnvrtc.so.")) continue;
        if (::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
      }
    }
  }

  const std::vector<fs::path> folders_ = CudaLibraryFolders();
  std::set<std::string> tried_;
};

}  // namespace

std::vector<fs::path> CudaLibraryFolders() {
  std::vector<fs::path> folders;
  for (const fs::path& given : PartsOf(Variable(kCudaLibrariesVariable))) {
    folders.push_back(given);
    AddPackages(given, folders);
  }
  if (!folders.empty()) return folders;
  for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = Variable(name); !prefix.empty()) AddPython(prefix, folders);
  }
  for (const fs::path& bin : PartsOf(Variable("PATH"))) {
    std::error_code error;
    if (fs::exists(bin / "python3", error)) AddPython(bin.parent_path(), folders);
  }
  AddPython(fs::path(Variable("HOME")) / ".local", folders);
  AddPython("/usr/local", folders);
  return folders;
}

OpenedLibrary OpenLibrary(const fs::path& file) {
  return Opener().Open(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace dtrain
