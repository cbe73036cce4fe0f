// Opens a shared library whose own needs, CUDA's libraries, may lie where the loader does not look:
// those that PyTorch brings are in Python's package folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// A folder with CUDA's libraries, or one of Python's packages (site-packages) that has nvidia/ in it.
inline constexpr char kCudaLibrariesVariable[] = "DTRAIN_CUDA_LIBRARIES";

// Where a library is looked for that the loader does not find: in what DTRAIN_CUDA_LIBRARIES names,
// several with ':' between them, or else in the packages of the Pythons at hand: $VIRTUAL_ENV,
// $CONDA_PREFIX, those of PATH, ~/.local, /usr/local.
std::vector<std::filesystem::path> CudaLibraryFolders();

struct OpenedLibrary {
  void* handle = nullptr;    // dlopen's; null: `error` says why
  std::string error = {};    // "" when it is open
  std::string missing = {};  // the library that was not found; "": something else is wrong
};

// Opens `file`, and before it what it needs of CudaLibraryFolders, for good.
OpenedLibrary OpenLibrary(const std::filesystem::path& file);

}  // namespace dtrain
