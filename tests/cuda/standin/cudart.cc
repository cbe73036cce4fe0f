// The CUDA runtime of the stand-in (stream.h).
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/cuda/standin/stream.h"

namespace {

constexpr size_t kMemory = size_t{16} << 30;  // of the "GPU"; DTRAIN_STANDIN_MIB overrides it

size_t Memory() {
  const char* const mib = std::getenv("DTRAIN_STANDIN_MIB");
  return mib == nullptr ? kMemory : static_cast<size_t>(std::atoll(mib)) << 20;
}

// The device's memory.  It is inaccessible while no stream works, so that host code which reads or
// writes it crashes.
class DeviceMemory {
 public:
  cudaError_t New(void** memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (used_ + bytes > Memory()) return cudaErrorMemoryAllocation;
    void* const room =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return cudaErrorMemoryAllocation;
    sizes_[room] = bytes;
    if (at_work_ == 0) Protect(PROT_NONE);
    used_ += bytes;
    *memory = room;
    return cudaSuccess;
  }
  cudaError_t Free(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto at = sizes_.find(memory);
    if (at == sizes_.end()) return memory == nullptr ? cudaSuccess : cudaErrorInvalidValue;
    ::munmap(memory, at->second);
    used_ -= at->second;
    sizes_.erase(at);
    return cudaSuccess;
  }
  size_t free() {
    const std::lock_guard lock(mutex_);
    return Memory() - used_;
  }
  // True if all of these bytes are in one allocation.
  bool Holds(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto at = sizes_.upper_bound(const_cast<void*>(memory));
    if (at == sizes_.begin()) return false;
    --at;
    const size_t offset =
        static_cast<size_t>(static_cast<const char*>(memory) - static_cast<const char*>(at->first));
    return offset + bytes <= at->second;
  }

  // Begin: a stream begins to work.  End: a stream has no more work.
  void Begin() {
    const std::lock_guard lock(mutex_);
    if (++at_work_ == 1) Protect(PROT_READ | PROT_WRITE);
  }
  void End() {
    const std::lock_guard lock(mutex_);
    if (--at_work_ == 0) Protect(PROT_NONE);
  }

 private:
  void Protect(int rights) {
    for (const auto& [memory, bytes] : sizes_) ::mprotect(memory, bytes, rights);
  }

  std::mutex mutex_;
  std::map<void*, size_t> sizes_;
  size_t used_ = 0;
  int at_work_ = 0;  // number of working streams
};

std::atomic<uint64_t> bytes_up = 0, bytes_down = 0, bytes_pageable = 0;

// The ranges of host memory that are pinned.
class PinnedRanges {
 public:
  void Add(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[memory] = bytes;
  }
  bool Remove(const void* memory) {
    const std::lock_guard lock(mutex_);
    return sizes_.erase(memory) == 1;
  }
  bool Holds(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto at = sizes_.upper_bound(memory);
    if (at == sizes_.begin()) return false;
    --at;
    return static_cast<const char*>(memory) + bytes <=
           static_cast<const char*>(at->first) + at->second;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, size_t> sizes_;
};

PinnedRanges& Pinned() {
  static PinnedRanges& ranges = *new PinnedRanges;
  return ranges;
}

DeviceMemory& TheDevice() {
  static DeviceMemory& memory = *new DeviceMemory;
  return memory;
}

}  // namespace

// The stream that cudaStream_t points to.
struct CUstream_st {
 public:
  CUstream_st() : thread_([this] { Work(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  uint64_t Ask(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(work));
    changed_.notify_all();
    return ++asked_for_;
  }
  uint64_t asked_for() {
    const std::lock_guard lock(mutex_);
    return asked_for_;
  }
  bool HasDone(uint64_t number) {
    const std::lock_guard lock(mutex_);
    return done_ >= number;
  }
  void Await(uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= number; });
  }

 private:
  void Work() {
#ifdef __SSE__
    // Denormals are zeros, as in kernels compiled with --ftz=true.
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || !asked_.empty(); });
      if (asked_.empty()) return;
      TheDevice().Begin();
      while (!asked_.empty()) {
        std::function<void()> work = std::move(asked_.front());
        asked_.pop_front();
        lock.unlock();
        work();
        work = nullptr;
        lock.lock();
        if (asked_.empty()) TheDevice().End();  // before a waiting thread continues
        ++done_;
        changed_.notify_all();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> asked_;
  uint64_t asked_for_ = 0, done_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t number = 0;
};

namespace dtrain::standin {

void InStream(cudaStream_t stream, std::function<void()> work) { stream->Ask(std::move(work)); }

bool OnDevice(const void* memory, size_t bytes) { return TheDevice().Holds(memory, bytes); }

void Refuse(const char* call, const char* why) {
  std::fprintf(stderr, "stand-in for CUDA: %s: %s\n", call, why);
  std::abort();
}

}  // namespace dtrain::standin

using dtrain::standin::Refuse;

namespace {

std::mutex streams_mutex;

std::set<CUstream_st*>& Streams() {
  static std::set<CUstream_st*> streams;
  return streams;
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "a stand-in for tests that computes on the CPU");
  properties->totalGlobalMem = Memory();
  return cudaSuccess;
}

// DTRAIN_STANDIN_CAPABILITY sets the compute capability: "70" means 7.0.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const char* const given = std::getenv("DTRAIN_STANDIN_CAPABILITY");
  const int capability = given == nullptr ? 90 : std::atoi(given);
  if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = capability / 10;
  } else if (attribute == cudaDevAttrComputeCapabilityMinor) {
    *value = capability % 10;
  } else {
    return cudaErrorNotSupported;
  }
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the stand-in";
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = TheDevice().free();
  *total = Memory();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) { return TheDevice().New(memory, bytes); }
cudaError_t cudaFree(void* memory) { return TheDevice().Free(memory); }

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  Pinned().Add(*memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  Pinned().Remove(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  Pinned().Add(memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  if (!Pinned().Remove(memory)) Refuse("cudaHostUnregister", "it was not registered");
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  const std::lock_guard lock(streams_mutex);
  Streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(streams_mutex);
    Streams().erase(stream);
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const stream : Streams()) stream->Await(stream->asked_for());
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->Await(stream->asked_for());
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  event->number = stream->Ask([] {});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->stream->HasDone(event->number) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event->stream->Await(event->number);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream->Ask([of = event->stream, number = event->number] { of->Await(number); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (!TheDevice().Holds(to, bytes)) Refuse("cudaMemsetAsync", "not the device's memory");
  stream->Ask([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != TheDevice().Holds(to, bytes)) Refuse("cudaMemcpyAsync", "where to?");
  if (from_device != TheDevice().Holds(from, bytes)) Refuse("cudaMemcpyAsync", "where from?");
  if (!from_device) bytes_up += bytes;
  if (!to_device) bytes_down += bytes;
  const void* const host = !from_device ? from : !to_device ? to : nullptr;
  if (host != nullptr && !Pinned().Holds(host, bytes)) bytes_pageable += bytes;
  stream->Ask([=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

// For tests: the bytes copied so far to the device and from the device, and the part of both that
// was not to or from pinned memory.
void StandinCopies(uint64_t* up, uint64_t* down, uint64_t* pageable) {
  *up = bytes_up;
  *down = bytes_down;
  *pageable = bytes_pageable;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream->Ask([=] { function(data); });
  return cudaSuccess;
}

}  // extern "C"
