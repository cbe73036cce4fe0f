#include "framework/device/cuda/module.h"

#include <dlfcn.h>

#include <cstdlib>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/device/cuda/open_library.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "libdtrain_cuda.so";

// The module, or the reason why it cannot be used.
struct Module {
  bool found = false;
  std::string error;  // "" if it can be used
  std::string hint = "build it again with the program, or take device: cpu";
  const DtrainCudaModule* table = nullptr;
};

// Must equal DTRAIN_BUILD of the module's sources.
std::string Build() { return Version() + " " + SourceRevision(); }

fs::path FileOf(const fs::path& folder) {
  if (!folder.empty()) return folder / kFile;
  std::error_code error;
  const fs::path beside = ProgramFolder() / kFile;
  return fs::exists(beside, error) ? beside : LibraryFolder() / kFile;
}

// The module is never closed: that would run CUDA's teardown while its threads still exist.  Opening it again returns
// the same module, and registers nothing twice.
Module Open(const fs::path& folder) {
  Module module;
  std::error_code error;
  const fs::path path = FileOf(folder);
  module.found = fs::exists(path, error);
  if (!module.found) return module;
  const OpenedLibrary library = OpenLibrary(path);
  if (library.handle == nullptr) {
    module.error = "the module does not load: " + library.error;
    if (!library.missing.empty()) {
      module.hint = "install CUDA's libraries, or name the folder of " + library.missing +
                    ", or a site-packages folder with nvidia/ in it, in " + kCudaLibrariesVariable +
                    "; or take device: cpu";
    }
    return module;
  }
  const auto table = reinterpret_cast<decltype(&DtrainCuda)>(::dlsym(library.handle, "DtrainCuda"));
  if (table == nullptr) {
    module.error = "the module is of another version";
  } else if (table()->build != Build()) {
    module.error = std::string("the module is of another build, ") + table()->build +
                   "; the program is " + Build();
  } else {
    module.table = table();
  }
  return module;
}

// Returns this process's rank on its node; 0 if no variable states it.
int LocalRank() {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* const value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

// Holds the module and the index of this process's GPU.
struct OwnGpu {
  Module module;
  int index = 0;
};

OwnGpu OwnGpuOf(const fs::path& folder) {
  if (const auto lack = WhyNoCuda(folder)) {
    throw ConfigError("device 'cuda' is not available: " + lack->why, lack->hint);
  }
  OwnGpu own = {Open(folder)};
  char why[256];
  own.index = LocalRank() % own.module.table->count(why, sizeof(why));
  return own;
}

}  // namespace

std::string CudaDevices() {
  const Module module = Open({});
  if (!module.found) return "not built in";
  if (!module.error.empty()) return module.error;
  char text[512] = {};
  module.table->describe(text, sizeof(text));
  return text;
}

std::optional<CudaLack> WhyNoCuda(const fs::path& folder) {
  const fs::path file = FileOf(folder);
  const Module module = Open(folder);
  if (!module.found) {
    const fs::path place = folder.empty() ? ProgramFolder() : folder;
    return CudaLack{std::string("there is no ") + kFile + " in " + place.string(),
                    "build where CMake finds a CUDA toolkit (preset cuda), or take device: cpu",
                    false};
  }
  if (!module.error.empty()) {
    return CudaLack{module.error + " (" + file.string() + ")", module.hint};
  }
  char why[256] = {};
  if (module.table->count(why, sizeof(why)) > 0) return std::nullopt;
  return CudaLack{std::string("CUDA finds no GPU: ") + why,
                  "dtrain doctor shows the driver; device: cpu needs none", true, true};
}

std::string CudaGpu() {
  const OwnGpu own = OwnGpuOf({});
  char text[256] = {};
  own.module.table->gpu(own.index, text, sizeof(text));
  return text;
}

std::shared_ptr<DeviceQueue> OpenCuda(Precision precision, const fs::path& folder) {
  const OwnGpu own = OwnGpuOf(folder);
  std::shared_ptr<DeviceQueue> queue;
  own.module.table->open(own.index, precision, &queue);
  return queue;
}

}  // namespace dtrain
