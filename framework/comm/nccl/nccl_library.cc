#include "framework/comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "framework/core/error.h"
#include "framework/device/cuda/open_library.h"

namespace dtrain::nccl {
namespace {

constexpr char kHint[] =
    "pip install nvidia-nccl-cu13, or DTRAIN_NCCL=/path/to/libnccl.so.2; collective: ordered needs "
    "none";

template <class Function>
void Bind(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
  if (function == nullptr) {
    throw UsageError(std::string("the library that was opened as NCCL has no ") + name, kHint);
  }
}

Library Open() {
  const char* const given = std::getenv(kLibraryVariable);
  const OpenedLibrary opened = OpenLibrary(given == nullptr ? "libnccl.so.2" : given);
  if (opened.handle == nullptr) throw UsageError("NCCL cannot be opened: " + opened.error, kHint);
  Library library;
  Bind(opened.handle, "ncclGetUniqueId", library.get_unique_id);
  Bind(opened.handle, "ncclCommInitRank", library.comm_init_rank);
  Bind(opened.handle, "ncclCommDestroy", library.comm_destroy);
  Bind(opened.handle, "ncclCommAbort", library.comm_abort);
  Bind(opened.handle, "ncclCommGetAsyncError", library.comm_get_async_error);
  Bind(opened.handle, "ncclAllReduce", library.all_reduce);
  Bind(opened.handle, "ncclGetErrorString", library.get_error_string);
  library.get_last_error =
      reinterpret_cast<const char* (*)(Comm*)>(::dlsym(opened.handle, "ncclGetLastError"));
  return library;
}

}  // namespace

const Library& Load() {
  static const Library library = Open();
  return library;
}

}  // namespace dtrain::nccl
