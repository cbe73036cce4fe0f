// Opens a shared library whose dependencies, CUDA's libraries, may be outside the loader's search path: PyTorch's
// wheels install them in Python's package folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// This variable names folders with CUDA's libraries, or site-packages folders that contain nvidia/.
inline constexpr char kCudaLibrariesVariable[] = "DTRAIN_CUDA_LIBRARIES";

// Returns the folders to search for libraries that the loader does not find: those in DTRAIN_CUDA_LIBRARIES, separated
// by ':', or else the package folders of the installed Pythons: $VIRTUAL_ENV, $CONDA_PREFIX, those of PATH, ~/.local,
// /usr/local.
std::vector<std::filesystem::path> CudaLibraryFolders();

struct OpenedLibrary {
  void* handle = nullptr;    // dlopen's; null: see `error`
  std::string error = {};    // "" on success
  std::string missing = {};  // the library that was not found; "": another error
};

// Opens `file` for the life of the process, after its dependencies in CudaLibraryFolders.
OpenedLibrary OpenLibrary(const std::filesystem::path& file);

}  // namespace dtrain
