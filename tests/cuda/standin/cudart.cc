// The CUDA runtime of the stand-in (stream.h).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/standin/place_in_file.h"
#include "tests/cuda/standin/stream.h"

namespace {

constexpr size_t kMemory = size_t{16} << 30;  // of the "GPU"; DTRAIN_STANDIN_MIB overrides it

size_t Memory() {
  const char* const mib = std::getenv("DTRAIN_STANDIN_MIB");
  return mib == nullptr ? kMemory : static_cast<size_t>(std::atoll(mib)) << 20;
}

using dtrain::Access;

// The stand-in counts these for tests (StandinCounts).
struct Counts {
  std::atomic<uint64_t> launches = 0, kernels = 0, waits = 0;
  std::atomic<uint64_t> read = 0, written = 0;           // bytes of the device's memory, by kernels
  std::atomic<uint64_t> up = 0, down = 0, pageable = 0;  // copied bytes
};
Counts counts;

// It counts these by kernel, since the last table (StandinTable).
struct OfKernel {
  uint64_t calls = 0, read = 0, written = 0;
};
std::mutex table_mutex;
std::map<std::string, OfKernel> table;

std::atomic<bool> computes = true;

thread_local const char* kernel_at_work = nullptr;  // of this thread

using dtrain::standin::PlaceInFile;
static_assert(sizeof(PlaceInFile) <= sizeof(cudaIpcMemHandle_t));

// The device's memory, as this process sees it.  Nothing of it is accessible but what the kernel at work has named.
class DeviceMemory {
 public:
  cudaError_t New(void** memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (used_ + bytes > Memory()) return cudaErrorMemoryAllocation;
    const off_t offset = end_;
    if (file_ < 0 || ::ftruncate(file_, offset + InPages(bytes)) != 0) {
      return cudaErrorMemoryAllocation;
    }
    void* const room = MapPlace(file_, offset, bytes);
    if (room == nullptr) return cudaErrorMemoryAllocation;
    end_ += InPages(bytes);
    offsets_[room] = offset;
    used_ += bytes;
    *memory = room;
    return cudaSuccess;
  }
  cudaError_t Free(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto at = offsets_.find(memory);
    if (at == offsets_.end()) return memory == nullptr ? cudaSuccess : cudaErrorInvalidValue;
    const size_t bytes = sizes_.at(memory);
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at->second, InPages(bytes));
    Unmap(memory);
    used_ -= bytes;
    offsets_.erase(at);
    return cudaSuccess;
  }
  // Names an allocation of this process, which begins at `memory`.
  cudaError_t Name(const void* memory, cudaIpcMemHandle_t* handle) {
    const std::lock_guard lock(mutex_);
    const auto at = offsets_.find(memory);
    if (at == offsets_.end()) return cudaErrorInvalidValue;
    const PlaceInFile place{::getpid(), file_, at->second, sizes_.at(memory)};
    std::memcpy(handle, &place, sizeof place);
    return cudaSuccess;
  }
  // Says where memory of this process lies: in which allocation, and how many bytes from its begin.
  bool Find(const void* memory, PlaceInFile* place, size_t* offset) {
    const std::lock_guard lock(mutex_);
    const auto at = Around(memory);
    if (at == sizes_.end() || offsets_.count(at->first) == 0) return false;
    *place = {::getpid(), file_, offsets_.at(at->first), at->second};
    *offset =
        static_cast<size_t>(static_cast<const char*>(memory) - static_cast<const char*>(at->first));
    return true;
  }
  cudaError_t Open(const cudaIpcMemHandle_t& handle, void** memory) {
    PlaceInFile place;
    std::memcpy(&place, &handle, sizeof place);
    if (place.process == ::getpid()) return cudaErrorDeviceUninitialized;  // as CUDA does
    const std::string path =
        "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorMapBufferObjectFailed;
    const std::lock_guard lock(mutex_);
    *memory = MapPlace(file, place.offset, place.bytes);
    ::close(file);
    return *memory == nullptr ? cudaErrorMapBufferObjectFailed : cudaSuccess;
  }
  cudaError_t Close(void* memory) {
    const std::lock_guard lock(mutex_);
    if (sizes_.count(memory) == 0 || offsets_.count(memory) != 0) return cudaErrorInvalidValue;
    Unmap(memory);
    return cudaSuccess;
  }
  size_t free() {
    const std::lock_guard lock(mutex_);
    return Memory() - used_;
  }
  // True if all of these bytes are in one allocation.
  bool Holds(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = Around(memory);
    if (at == sizes_.end()) return false;
    const size_t offset =
        static_cast<size_t>(static_cast<const char*>(memory) - static_cast<const char*>(at->first));
    return offset + bytes <= at->second;
  }

  // Runs a kernel, one at a time in all streams, since pages are open to all threads.
  void Run(const char* name, const std::vector<Access>& accesses,
           const std::function<void()>& work) {
    const std::lock_guard lock(running_);
    kernel_at_work = name;
    Protect(accesses, false, PROT_READ);
    Protect(accesses, true, PROT_READ | PROT_WRITE);  // after the others: pages may be shared
    work();
    Protect(accesses, false, PROT_NONE);
    Protect(accesses, true, PROT_NONE);
    kernel_at_work = nullptr;
  }

  // Says who touched what, if it is memory of the device.  Called by the handler of SIGSEGV.
  void SayWhoTouched(const void* address, bool writes) {
    if (!mutex_.try_lock()) return;
    const auto at = Around(address);
    if (at == sizes_.end() ||
        static_cast<const char*>(address) >= static_cast<const char*>(at->first) + at->second) {
      mutex_.unlock();
      return;
    }
    std::fprintf(stderr, "stand-in for CUDA: %s%s %s byte %td of an allocation of %zu bytes%s\n",
                 kernel_at_work == nullptr ? "the host" : "kernel ",
                 kernel_at_work == nullptr ? "" : kernel_at_work, writes ? "writes" : "reads",
                 static_cast<const char*>(address) - static_cast<const char*>(at->first),
                 at->second,
                 kernel_at_work == nullptr ? " of the device" : ", which its launch does not name");
    mutex_.unlock();
  }

 private:
  using Sizes = std::map<const void*, size_t>;

  Sizes::const_iterator Around(const void* memory) const {
    auto at = sizes_.upper_bound(memory);
    return at == sizes_.begin() ? sizes_.end() : --at;
  }

  static off_t InPages(size_t bytes) {
    static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return static_cast<off_t>((bytes + page - 1) / page * page);
  }
  // Returns null if there is no room.
  void* MapPlace(int file, off_t offset, size_t bytes) {
    void* const room = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, offset);
    if (room == MAP_FAILED) return nullptr;
    sizes_[room] = bytes;
    return room;
  }
  void Unmap(const void* memory) {
    const auto at = sizes_.find(memory);
    ::munmap(const_cast<void*>(memory), at->second);
    sizes_.erase(at);
  }

  static void Protect(const std::vector<Access>& accesses, bool writes, int rights) {
    static const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const Access& access : accesses) {
      if (access.span == 0 || access.writes != writes) continue;
      const auto from = reinterpret_cast<uintptr_t>(access.begin) / page * page;
      const auto to = reinterpret_cast<uintptr_t>(access.begin) + access.span;
      ::mprotect(reinterpret_cast<void*>(from), to - from, rights);
    }
  }

  std::mutex mutex_, running_;
  Sizes sizes_;
  std::map<const void*, off_t> offsets_;  // of this process's own allocations
  const int file_ = ::memfd_create("stand-in for a GPU's memory", MFD_CLOEXEC);
  off_t end_ = 0;  // places in the file are not used again
  size_t used_ = 0;
};

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

DeviceMemory& TheDevice();

// Names the culprit before the program ends.
void WhenTouched(int, siginfo_t* info, void* context) {
  bool writes = false;
#ifdef __x86_64__
  writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  TheDevice().SayWhoTouched(info->si_addr, writes);
  ::signal(SIGSEGV, SIG_DFL);  // the access is tried again, and ends the program
}

DeviceMemory& TheDevice() {
  static DeviceMemory& memory = []() -> DeviceMemory& {
    struct sigaction action = {};
    action.sa_sigaction = WhenTouched;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, nullptr);
    return *new DeviceMemory;
  }();
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
  // From now on Do keeps work, and End returns what it has kept.
  void Record() { records_ = true; }
  std::vector<std::function<void()>> EndRecord() {
    records_ = false;
    return std::exchange(recorded_, {});
  }
  bool records() const { return records_; }
  void Do(std::function<void()> work) {
    if (!records_) return work();
    recorded_.push_back(std::move(work));
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
      std::function<void()> work = std::move(asked_.front());
      asked_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> asked_;
  uint64_t asked_for_ = 0, done_ = 0;
  bool records_ = false;
  std::vector<std::function<void()>> recorded_;
  bool ends_ = false;
  std::thread thread_;
};

// The work of a captured stream; the same when it is instantiated.
struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st : CUgraph_st {};

struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t number = 0;
};

namespace dtrain::standin {

namespace {

void CountAndRun(cudaStream_t stream, const char* name, const std::vector<Access>& accesses,
                 const std::function<void()>& work) {
  ++counts.kernels;
  uint64_t read = 0, written = 0;
  for (const Access& access : accesses) {
    if (access.span > 0 && !TheDevice().Holds(access.begin, access.span)) {
      Refuse(name, "its launch names memory that is not the device's");
    }
    if (access.reads) read += access.bytes;
    if (access.writes) written += access.bytes;
  }
  counts.read += read;
  counts.written += written;
  {
    const std::lock_guard lock(table_mutex);
    OfKernel& of = table[name];
    ++of.calls;
    of.read += read;
    of.written += written;
  }
  if (!computes) return;
  stream->Ask([name, accesses, work] { TheDevice().Run(name, accesses, work); });
}

}  // namespace

void LaunchKernel(cudaStream_t stream, const char* name, std::vector<Access> accesses,
                  std::function<void()> work) {
  if (!stream->records()) ++counts.launches;
  stream->Do([stream, name, accesses = std::move(accesses), work = std::move(work)] {
    CountAndRun(stream, name, accesses, work);
  });
}

bool OnDevice(const void* memory, size_t bytes) { return TheDevice().Holds(memory, bytes); }

void Refuse(const char* call, const char* why) {
  std::fprintf(stderr, "stand-in for CUDA: %s: %s\n", call, why);
  std::abort();
}

}  // namespace dtrain::standin

namespace dtrain {

void StandinKernel(cudaStream_t stream, const KernelLaunch& launch, std::function<void()> run) {
  std::vector<Access> accesses(launch.accesses);
  accesses.insert(accesses.end(), launch.more.begin(), launch.more.end());
  accesses.insert(accesses.end(), launch.rest.begin(), launch.rest.end());
  accesses.insert(accesses.end(), launch.listed.begin(), launch.listed.end());
  standin::LaunchKernel(stream, launch.name, std::move(accesses), std::move(run));
}

}  // namespace dtrain

using dtrain::standin::LaunchKernel;
using dtrain::standin::Refuse;

namespace {

// The stream that this thread captures.  CUDA allows no call that waits or allocates meanwhile.
thread_local cudaStream_t captured = nullptr;

void NotWhileCapturing(const char* call) {
  if (captured != nullptr) Refuse(call, "the thread captures a stream");
}

thread_local int current_device = 0;

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

// DTRAIN_STANDIN_GPUS sets the number of GPUs, which share their memory.
cudaError_t cudaGetDeviceCount(int* count) {
  const char* const given = std::getenv("DTRAIN_STANDIN_GPUS");
  *count = given == nullptr ? 1 : std::atoi(given);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  properties->uuid.bytes[0] = static_cast<char>(device);
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

cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the stand-in";
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = TheDevice().free();
  *total = Memory();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  NotWhileCapturing("cudaMalloc");
  return TheDevice().New(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  NotWhileCapturing("cudaFree");
  return TheDevice().Free(memory);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  NotWhileCapturing("cudaIpcGetMemHandle");
  return TheDevice().Name(memory, handle);
}
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  NotWhileCapturing("cudaIpcOpenMemHandle");
  return TheDevice().Open(handle, memory);
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  NotWhileCapturing("cudaIpcCloseMemHandle");
  return TheDevice().Close(memory);
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  NotWhileCapturing("cudaMallocHost");
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  Pinned().Add(*memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  NotWhileCapturing("cudaFreeHost");
  Pinned().Remove(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  NotWhileCapturing("cudaHostRegister");
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
  NotWhileCapturing("cudaDeviceSynchronize");
  ++counts.waits;
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const stream : Streams()) stream->Await(stream->asked_for());
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  NotWhileCapturing("cudaStreamSynchronize");
  ++counts.waits;
  stream->Await(stream->asked_for());
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  NotWhileCapturing("cudaStreamBeginCapture");
  captured = stream;
  stream->Record();
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (captured != stream) Refuse("cudaStreamEndCapture", "the thread does not capture this stream");
  captured = nullptr;
  *graph = new CUgraph_st{stream->EndRecord()};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long) {
  *instance = new CUgraphExec_st{{graph->work}};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  NotWhileCapturing("cudaGraphLaunch");
  ++counts.launches;
  for (const auto& work : graph->work) work();
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
  NotWhileCapturing("cudaEventRecord");
  event->stream = stream;
  event->number = stream->Ask([] {});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  NotWhileCapturing("cudaEventQuery");
  return event->stream->HasDone(event->number) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  NotWhileCapturing("cudaEventSynchronize");
  ++counts.waits;
  event->stream->Await(event->number);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  NotWhileCapturing("cudaStreamWaitEvent");
  stream->Ask([of = event->stream, number = event->number] { of->Await(number); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  LaunchKernel(stream, "cudaMemsetAsync",
               {dtrain::Writes(static_cast<char*>(to), static_cast<int64_t>(bytes))},
               [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != TheDevice().Holds(to, bytes)) Refuse("cudaMemcpyAsync", "where to?");
  if (from_device != TheDevice().Holds(from, bytes)) Refuse("cudaMemcpyAsync", "where from?");
  std::vector<Access> accesses;
  const auto count = static_cast<int64_t>(bytes);
  if (to_device) accesses.push_back(dtrain::Writes(static_cast<char*>(to), count));
  if (from_device) accesses.push_back(dtrain::Reads(static_cast<const char*>(from), count));
  const auto copy = [=] { std::memmove(to, from, bytes); };
  if (to_device && from_device) {
    LaunchKernel(stream, "cudaMemcpyAsync", std::move(accesses), copy);
    return cudaSuccess;
  }
  NotWhileCapturing("cudaMemcpyAsync with memory of the host");
  ++counts.launches;
  (to_device ? counts.up : counts.down) += bytes;
  if (!Pinned().Holds(to_device ? from : to, bytes)) counts.pageable += bytes;
  stream->Ask([=] { TheDevice().Run("cudaMemcpyAsync", accesses, copy); });
  return cudaSuccess;
}

// For tests: what was counted so far, in the order of Counts.
void StandinCounts(uint64_t* counted) {
  for (const std::atomic<uint64_t>* count :
       {&counts.launches, &counts.kernels, &counts.waits, &counts.read, &counts.written, &counts.up,
        &counts.down, &counts.pageable}) {
    *counted++ = *count;
  }
}

// For tests: calls and megabytes of each kernel since the last call, the most bytes first.
const char* StandinTable() {
  static std::string text;
  const std::lock_guard lock(table_mutex);
  std::vector<std::pair<std::string, OfKernel>> rows(table.begin(), table.end());
  table.clear();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.read + a.second.written > b.second.read + b.second.written;
  });
  text.clear();
  for (const auto& [name, of] : rows) {
    char row[200];
    std::snprintf(row, sizeof row, "%-40s %5lu calls %9.1f MB read %9.1f MB written\n",
                  name.c_str(), of.calls, static_cast<double>(of.read) / 1e6,
                  static_cast<double>(of.written) / 1e6);
    text += row;
  }
  return text.c_str();
}

// For tests: from now on kernels are counted, and computed only if `yes`.
void StandinComputes(bool yes) { computes = yes; }

// For the stand-in of NCCL (tests/cuda/standin_nccl).
bool StandinPlaceOf(const void* memory, PlaceInFile* place, size_t* offset) {
  return TheDevice().Find(memory, place, offset);
}
void StandinLaunch(void* stream, const char* name, void* updates, size_t bytes, void (*work)(void*),
                   void* given) {
  LaunchKernel(static_cast<cudaStream_t>(stream), name,
               {dtrain::Updates(static_cast<char*>(updates), static_cast<int64_t>(bytes))},
               [=] { work(given); });
}

// For tests: launches a kernel that reads or writes a page which its launch does not name.
void StandinStray(bool writes) {
  const int64_t count = 1 << 12;
  void *named = nullptr, *other = nullptr;
  cudaStream_t stream = nullptr;
  cudaMalloc(&named, count * sizeof(float));
  cudaMalloc(&other, count * sizeof(float));
  cudaStreamCreateWithFlags(&stream, 0);
  LaunchKernel(stream, "stray", {dtrain::Updates(static_cast<float*>(named), count)}, [=] {
    volatile float* const to = static_cast<float*>(writes ? other : named);
    *to = *static_cast<volatile float*>(writes ? named : other);
  });
  cudaStreamSynchronize(stream);
}

}  // extern "C"
