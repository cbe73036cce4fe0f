// A stand-in for NCCL, for ranks that compute on the stand-in for CUDA (tests/cuda/standin).  It refuses ranks that share
// a GPU, as NCCL does.  Ranks are processes of one machine, and meet in a file in shared memory.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/nccl/nccl_library.h"
#include "tests/cuda/standin/place_in_file.h"

namespace {

using dtrain::nccl::Result;
using dtrain::nccl::UniqueId;
using dtrain::standin::PlaceInFile;

constexpr Result kInvalidUsage = 5;

thread_local std::string last_error;

// Returns a function of the stand-in for CUDA.
template <class Function>
Function* OfCuda(const char* name) {
  void* const module =
      ::dlopen(DTRAIN_BINARY_DIR "/tests/cuda_standin/libdtrain_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  return module == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(module, name));
}

}  // namespace

namespace dtrain::nccl {

// What all ranks see.  The file is zeros at first.
struct Meeting {
  static constexpr int kRanks = 16;
  std::atomic<int> arrived, round;
  int devices[kRanks];
  PlaceInFile places[kRanks];  // of their vectors, in the sum at work
  size_t offsets[kRanks];      // in these places
};

struct Comm {
  int rank, ranks;
  Meeting* meeting;

  void Barrier() const {
    const int round = meeting->round;
    if (++meeting->arrived == ranks) {
      meeting->arrived = 0;
      ++meeting->round;
    }
    while (meeting->round == round) ::sched_yield();
  }
  // Maps a rank's vector once more, so that the pages that are closed do not matter.
  float* Map(int of, size_t count, void** begin, size_t* bytes) const {
    const PlaceInFile& place = meeting->places[of];
    const std::string path =
        "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    *bytes = meeting->offsets[of] + count * sizeof(float);
    *begin = ::mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, place.offset);
    ::close(file);
    if (*begin == MAP_FAILED) std::abort();
    return reinterpret_cast<float*>(static_cast<char*>(*begin) + meeting->offsets[of]);
  }
  void Add(const PlaceInFile& mine, size_t offset, size_t count) const {
    meeting->places[rank] = mine;
    meeting->offsets[rank] = offset;
    Barrier();
    std::vector<float> sum(count);
    std::vector<std::pair<void*, size_t>> mapped;
    float* own = nullptr;
    for (int of = ranks - 1; of >= 0; --of) {  // not in rank order, which nobody may rely on
      auto& [begin, bytes] = mapped.emplace_back();
      float* const term = Map(of, count, &begin, &bytes);
      if (of == rank) own = term;
      for (size_t i = 0; i < count; ++i) sum[i] += term[i];
    }
    Barrier();
    std::memcpy(own, sum.data(), count * sizeof(float));
    for (const auto& [begin, bytes] : mapped) ::munmap(begin, bytes);
    Barrier();
  }
};

}  // namespace dtrain::nccl

using dtrain::nccl::Comm;
using dtrain::nccl::Meeting;

extern "C" {

Result ncclGetUniqueId(UniqueId* id) {
  std::snprintf(id->bytes, sizeof id->bytes, "/dev/shm/dtrain-standin-nccl-XXXXXX");
  const int file = ::mkstemp(id->bytes);
  if (file < 0 || ::ftruncate(file, sizeof(Meeting)) != 0) return kInvalidUsage;
  ::close(file);
  return dtrain::nccl::kSuccess;
}

Result ncclCommInitRank(Comm** comm, int ranks, UniqueId id, int rank) {
  const int file = ::open(id.bytes, O_RDWR | O_CLOEXEC);
  void* const memory =
      ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  auto* const get_device = OfCuda<int(int*)>("cudaGetDevice");
  if (memory == MAP_FAILED || ranks > Meeting::kRanks || get_device == nullptr)
    return kInvalidUsage;
  *comm = new Comm{rank, ranks, static_cast<Meeting*>(memory)};
  Meeting& meeting = *(*comm)->meeting;
  get_device(&meeting.devices[rank]);
  (*comm)->Barrier();
  if (rank == 0) ::unlink(id.bytes);
  bool shared = false;
  for (int other = 0; other < ranks; ++other) {
    shared |= other != rank && meeting.devices[other] == meeting.devices[rank];
  }
  (*comm)->Barrier();
  if (!shared) return dtrain::nccl::kSuccess;
  last_error = "Duplicate GPU detected";
  delete std::exchange(*comm, nullptr);
  return kInvalidUsage;
}

Result ncclCommDestroy(Comm* comm) {
  ::munmap(comm->meeting, sizeof(Meeting));
  delete comm;
  return dtrain::nccl::kSuccess;
}
Result ncclCommAbort(Comm* comm) { return ncclCommDestroy(comm); }

Result ncclCommGetAsyncError(Comm*, Result* error) {
  *error = dtrain::nccl::kSuccess;
  return dtrain::nccl::kSuccess;
}

Result ncclAllReduce(const void* send, void* receive, size_t count, int type, int operation,
                     Comm* comm, void* stream) {
  if (send != receive || type != dtrain::nccl::kFloat || operation != dtrain::nccl::kSum) {
    last_error = "the stand-in adds floats in place";
    return kInvalidUsage;
  }
  auto* const place_of = OfCuda<bool(const void*, PlaceInFile*, size_t*)>("StandinPlaceOf");
  auto* const launch =
      OfCuda<void(void*, const char*, void*, size_t, void (*)(void*), void*)>("StandinLaunch");
  struct Sum {
    Comm* comm;
    PlaceInFile place;
    size_t offset, count;
  };
  auto* const sum = new Sum{comm, {}, 0, count};
  if (!place_of(receive, &sum->place, &sum->offset)) return kInvalidUsage;
  launch(
      stream, "ncclAllReduce", receive, count * sizeof(float),
      [](void* given) {
        const auto* const work = static_cast<Sum*>(given);
        work->comm->Add(work->place, work->offset, work->count);
        delete work;
      },
      sum);
  return dtrain::nccl::kSuccess;
}

const char* ncclGetErrorString(Result result) {
  return result == dtrain::nccl::kSuccess ? "no error" : "invalid usage";
}
const char* ncclGetLastError(Comm*) { return last_error.c_str(); }

}  // extern "C"
