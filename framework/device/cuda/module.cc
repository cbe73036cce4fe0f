#include "framework/device/cuda/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace dtrain {

std::string CudaDevices() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path path = program.parent_path() / "libdtrain_cuda.so";
  if (error || !std::filesystem::exists(path, error)) return "not built in";
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return std::string("the module does not load: ") + ::dlerror();
  using Describe = void (*)(char*, unsigned long);
  const auto describe = reinterpret_cast<Describe>(::dlsym(module, "DtrainCudaDevices"));
  if (describe == nullptr) return "the module is of another version";
  char text[512] = {};
  describe(text, sizeof(text));
  return text;
}

}  // namespace dtrain
