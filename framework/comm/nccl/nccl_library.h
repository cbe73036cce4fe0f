// The calls of NVIDIA's NCCL that dtrain makes, loaded at run time: the program needs NCCL neither where it is built nor,
// without `collective: nccl`, where it runs.
//
// The declarations follow nccl.h (docs.nvidia.com/deeplearning/nccl, "API").  Version 2.4 has all calls but the last.
#pragma once

#include <cstddef>
#include <string>

namespace dtrain::nccl {

struct UniqueId {
  char bytes[128];
};
struct Comm;  // ncclComm
using Result = int;

inline constexpr Result kSuccess = 0;     // ncclSuccess
inline constexpr Result kInProgress = 7;  // ncclInProgress
inline constexpr int kFloat = 7;          // ncclFloat32
inline constexpr int kSum = 0;            // ncclSum

struct Library {
  Result (*get_unique_id)(UniqueId* id) = nullptr;
  Result (*comm_init_rank)(Comm** comm, int ranks, UniqueId id, int rank) = nullptr;
  Result (*comm_destroy)(Comm* comm) = nullptr;
  Result (*comm_abort)(Comm* comm) = nullptr;
  Result (*comm_get_async_error)(Comm* comm, Result* error) = nullptr;
  Result (*all_reduce)(const void* send, void* receive, size_t count, int type, int operation,
                       Comm* comm, void* stream) = nullptr;
  const char* (*get_error_string)(Result result) = nullptr;
  const char* (*get_last_error)(Comm* comm) = nullptr;  // null before version 2.13
};

// The file that is opened as NCCL; unset: libnccl.so.2, where the loader or CudaLibraryFolders finds it.
inline constexpr char kLibraryVariable[] = "DTRAIN_NCCL";

// Returns NCCL, which is opened at the first call.  Throws UsageError with the reason if it cannot be opened.
const Library& Load();

}  // namespace dtrain::nccl
