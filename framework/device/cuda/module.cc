#include "framework/device/cuda/module.h"

#include <dlfcn.h>

#include "framework/core/process.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "libdtrain_cuda.so";

using Describe = void (*)(char*, unsigned long);

// The module, or what is wrong with it.
struct Module {
  bool found = false;
  std::string error;  // "" when it can be used
  Describe describe = nullptr;
};

// Stays open: closing it would run CUDA's end while its threads are there.
Module Open(const fs::path& folder) {
  Module module;
  std::error_code error;
  const fs::path path = folder / kFile;
  module.found = fs::exists(path, error);
  if (!module.found) return module;
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    module.error = std::string("the module does not load: ") + ::dlerror();
    return module;
  }
  module.describe = reinterpret_cast<Describe>(::dlsym(handle, "DtrainCudaDevices"));
  if (module.describe == nullptr) module.error = "the module is of another version";
  return module;
}

}  // namespace

std::string CudaDevices() {
  const Module module = Open(ProgramFolder());
  if (!module.found) return "not built in";
  if (!module.error.empty()) return module.error;
  char text[512] = {};
  module.describe(text, sizeof(text));
  return text;
}

CudaLack WhyNoCuda(const fs::path& folder) {
  const fs::path place = folder.empty() ? ProgramFolder() : folder;
  const Module module = Open(place);
  if (!module.found) {
    return {std::string("there is no ") + kFile + " in " + place.string(),
            "build where CMake finds a CUDA toolkit (preset cuda), or take device: cpu"};
  }
  if (!module.error.empty()) {
    return {module.error + " (" + (place / kFile).string() + ")",
            "build it anew with the program, or take device: cpu"};
  }
  return {std::string(kFile) + " has no kernels yet: it only tells which GPUs there are",
          "device: cpu, or auto"};
}

}  // namespace dtrain
