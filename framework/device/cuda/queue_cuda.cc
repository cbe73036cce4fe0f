#include "framework/device/cuda/queue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

[[noreturn]] void Refuse(const char* call, const std::string& why) {
  throw Error(ExitCode::kInternal, fmt::format("{} failed: {}", call, why),
              "dtrain doctor shows the driver, CUDA and cuDNN; compute-sanitizer finds which "
              "kernel did it");
}

// Tensor cores support fp16 from Volta on, tf32 and bf16 from Ampere on.
void CheckPrecision(int index, Precision precision) {
  int major = 0, minor = 0;
  DT_CUDA(cudaDeviceGetAttribute, &major, cudaDevAttrComputeCapabilityMajor, index);
  DT_CUDA(cudaDeviceGetAttribute, &minor, cudaDevAttrComputeCapabilityMinor, index);
  const int least = precision == Precision::kFp16 ? 7 : 8;
  if (precision == Precision::kFp32 || major >= least) return;
  throw ConfigError(
      fmt::format("precision {} needs a GPU of compute capability {}.0; GPU {} has {}.{}",
                  NameOf(precision), least, index, major, minor),
      "precision: fp32");
}

// The memory that this process has allocated, of all its queues.
class Allocations {
 public:
  void Add(void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    all_[static_cast<std::byte*>(memory)] = {bytes, {}};
  }
  void Remove(void* memory) {
    const std::lock_guard lock(mutex_);
    all_.erase(static_cast<std::byte*>(memory));
  }
  // Returns the begin of the allocation around `memory`, and its handle, which CUDA is asked for once, since sums name
  // their vectors in every step.
  std::pair<std::byte*, cudaIpcMemHandle_t> Around(const void* memory) {
    const auto* const place = static_cast<const std::byte*>(memory);
    const std::lock_guard lock(mutex_);
    const auto behind = all_.upper_bound(const_cast<std::byte*>(place));
    DT_CHECK(behind != all_.begin());
    auto& [begin, allocation] = *std::prev(behind);
    DT_CHECK(place < begin + allocation.bytes) << "memory that no queue has allocated";
    if (!allocation.handle) {
      cudaIpcMemHandle_t handle = {};
      DT_CUDA(cudaIpcGetMemHandle, &handle, begin);
      allocation.handle = handle;
    }
    return {begin, *allocation.handle};
  }

 private:
  struct Allocation {
    size_t bytes;
    std::optional<cudaIpcMemHandle_t> handle;
  };
  std::mutex mutex_;
  std::map<std::byte*, Allocation> all_;
};

Allocations& AllAllocations() {
  static Allocations allocations;
  return allocations;
}

// Returns a number that other processes do not have, though they may be in containers with process numbers of their own.
int64_t ThisProcess() {
  static const int64_t number = WallNow() ^ (static_cast<int64_t>(::getpid()) << 40);
  return number;
}

std::string Size(size_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

}  // namespace

// Clears the error that is thrown, so that the next call does not report it again.
void CheckCall(cudaError_t status, const char* call) {
  if (status != cudaSuccess) cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice) {
    throw ConfigError(
        "the CUDA module was built for other GPUs than this one",
        "configure with -DDTRAIN_CUDA_ARCHS=N, N the GPU's compute capability (70 for "
        "7.0), and build it again");
  }
  if (status != cudaSuccess) Refuse(call, cudaGetErrorString(status));
}

void CheckCall(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) Refuse(call, cublasGetStatusString(status));
}

void CheckCall(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char why[512] = {};
  cudnnGetLastErrorString(why, sizeof why);  // which condition was not met
  Refuse(call, fmt::format("{} {}", cudnnGetErrorString(status), why));
}

// Mark is a CUDA event, which returns to the queue's spare events when its last mark is dropped.
class CudaQueue::Mark : public ReadyEvent::Mark {
 public:
  Mark(std::shared_ptr<CudaQueue> queue, cudaEvent_t event)
      : queue_(std::move(queue)), event_(event) {}
  ~Mark() override { queue_->GiveBack(event_); }

  bool Done() const override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    CheckCall(status, "cudaEventQuery");
    return true;
  }
  void Wait() const override { DT_CUDA(cudaEventSynchronize, event_); }

 private:
  const std::shared_ptr<CudaQueue> queue_;
  const cudaEvent_t event_;
};

CudaQueue::CudaQueue(int index, Precision precision) : index_(index), precision_(precision) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);  // does not set count without a driver
  if (status != cudaSuccess || index >= count) {
    throw ConfigError(fmt::format("there is no GPU {}: {}", index,
                                  status != cudaSuccess ? cudaGetErrorString(status)
                                                        : fmt::format("CUDA sees {}", count)),
                      "dtrain doctor lists the GPUs; device: cpu needs none");
  }
  DT_CUDA(cudaSetDevice, index);
  CheckPrecision(index, precision);
  cudaStream_t stream = nullptr;
  DT_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  stream_.reset(stream);
}

// Products get their workspace from here: cuBLAS would take memory of its own for each captured step, and might choose
// another kernel for it than for a step that is submitted.  The size is what cuBLAS recommends for Hopper; 4 MiB are
// enough for earlier GPUs.
constexpr size_t kBlasWorkspace = size_t{32} << 20;

cublasHandle_t CudaQueue::blas() {
  const cudaStream_t of = stream();
  if (blas_ == nullptr) {
    cublasHandle_t blas = nullptr;
    DT_CUDA(cublasCreate, &blas);
    Owned<cublasHandle_t, &cublasDestroy> made(blas);
    DT_CUDA(cublasSetStream, blas, of);  // forgets a workspace
    if (blas_workspace_ == nullptr) blas_workspace_ = Allocate(kBlasWorkspace);
    DT_CUDA(cublasSetWorkspace, blas, blas_workspace_, kBlasWorkspace);
    blas_ = std::move(made);
  }
  return blas_.get();
}

cudnnHandle_t CudaQueue::dnn() {
  const cudaStream_t of = stream();
  if (dnn_ == nullptr) {
    cudnnHandle_t dnn = nullptr;
    DT_CUDA(cudnnCreate, &dnn);
    Owned<cudnnHandle_t, &cudnnDestroy> made(dnn);
    DT_CUDA(cudnnSetStream, dnn, of);
    dnn_ = std::move(made);
  }
  return dnn_.get();
}

// After an exception in a step, other queues of the GPU may still use this queue's memory, so all of them are waited
// for.
void CudaQueue::WaitForAllQueues() const {
  cudaSetDevice(index_);
  cudaDeviceSynchronize();
}

CudaQueue::~CudaQueue() {
  WaitForAllQueues();
  blas_.reset();
  cudaFree(blas_workspace_);
  for (const Room& room : factors_) cudaFree(room.memory);
  for (const cudaEvent_t event : spare_events_) cudaEventDestroy(event);
}

void* CudaQueue::FactorRoom(int factor, size_t bytes) {
  Room& room = factors_[factor];
  if (room.bytes < bytes) {
    if (room.memory != nullptr) Free(room.memory);
    room = {};
    room = {Allocate(bytes), bytes};
    ++memory_version_;
  }
  return room.memory;
}

cudaEvent_t CudaQueue::TakeEvent() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_events_.empty()) {
      const cudaEvent_t event = spare_events_.back();
      spare_events_.pop_back();
      return event;
    }
  }
  DT_CUDA(cudaSetDevice, index_);
  cudaEvent_t event = nullptr;
  DT_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  return event;
}

void CudaQueue::GiveBack(cudaEvent_t event) {
  const std::lock_guard lock(mutex_);
  spare_events_.push_back(event);
}

ReadyEvent CudaQueue::Record() {
  const cudaEvent_t event = TakeEvent();
  DT_CUDA(cudaEventRecord, event, stream());
  return ReadyEvent(std::make_shared<Mark>(shared_from_this(), event));
}

void CudaQueue::After(DeviceQueue& other) {
  const cudaEvent_t event = TakeEvent();
  DT_CUDA(cudaEventRecord, event, static_cast<CudaQueue&>(other).stream());
  DT_CUDA(cudaStreamWaitEvent, stream(), event, 0);
  GiveBack(event);  // the wait refers to the record above, so the event can be reused
}

void* CudaQueue::Allocate(size_t bytes) {
  RefuseIfCaptured("cudaMalloc");
  DT_CUDA(cudaSetDevice, index_);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    DT_CUDA(cudaMemGetInfo, &free, &total);
    throw UsageError(fmt::format("GPU {} has no room for {} more: {} of {} are free", index_,
                                 Size(bytes), Size(free), Size(total)),
                     "a smaller batch, or accumulate: micro-batches need less");
  }
  CheckCall(status, "cudaMalloc");
  AllAllocations().Add(memory, bytes);
  Zero(memory, bytes);
  return memory;
}

size_t CudaQueue::FreeBytes() {
  DT_CUDA(cudaSetDevice, index_);
  size_t free = 0, total = 0;
  DT_CUDA(cudaMemGetInfo, &free, &total);
  return free;
}

void CudaQueue::Free(void* memory) {
  WaitForAllQueues();
  AllAllocations().Remove(memory);
  cudaFree(memory);
}

std::string CudaQueue::Uuid() const {
  cudaDeviceProp properties;
  DT_CUDA(cudaGetDeviceProperties, &properties, index_);
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

PeerMemory CudaQueue::Share(const void* memory) {
  DT_CUDA(cudaSetDevice, index_);
  const auto [begin, handle] = AllAllocations().Around(memory);
  PeerMemory shared{.offset = static_cast<const std::byte*>(memory) - begin,
                    .process = ThisProcess(),
                    .address = const_cast<void*>(memory)};
  static_assert(sizeof handle == sizeof shared.handle);
  std::memcpy(shared.handle.data(), &handle, sizeof handle);
  return shared;
}

// CUDA does not open a handle in the process that has made it.
std::shared_ptr<void> CudaQueue::Map(const PeerMemory& memory) {
  if (memory.process == ThisProcess()) {
    return {std::shared_ptr<void>(), static_cast<std::byte*>(memory.address) - memory.offset};
  }
  RefuseIfCaptured("cudaIpcOpenMemHandle");
  DT_CUDA(cudaSetDevice, index_);
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, memory.handle.data(), sizeof handle);
  void* begin = nullptr;
  DT_CUDA(cudaIpcOpenMemHandle, &begin, handle, cudaIpcMemLazyEnablePeerAccess);
  return {begin, [self = shared_from_this()](void* mapped) {
            self->WaitForAllQueues();
            cudaIpcCloseMemHandle(mapped);
          }};
}

bool CudaQueue::Pin(void* memory, size_t bytes) {
  DT_CUDA(cudaSetDevice, index_);
  if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess) return true;
  // Clears the error (such as the limit of lockable memory), so that the next call does not report it.
  cudaGetLastError();
  return false;
}

void CudaQueue::Unpin(void* memory) {
  WaitForAllQueues();
  cudaHostUnregister(memory);
}

void CudaQueue::RefuseIfCaptured(const char* call) const {
  if (captured_) Refuse(call, "the step is being captured");
}

void CudaQueue::Upload(void* to, const void* from, size_t bytes) {
  RefuseIfCaptured("cudaMemcpyAsync from the host");
  DT_CUDA(cudaMemcpyAsync, to, from, bytes, cudaMemcpyHostToDevice, stream());
}

void CudaQueue::Download(void* to, const void* from, size_t bytes) {
  RefuseIfCaptured("cudaMemcpyAsync to the host");
  DT_CUDA(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToHost, stream());
}

void* CudaQueue::AllocatePinned(size_t bytes) {
  DT_CUDA(cudaSetDevice, index_);
  void* memory = nullptr;
  // With unified addressing, which every 64-bit system has, kernels use the same address.
  DT_CUDA(cudaMallocHost, &memory, bytes);
  return memory;
}

void CudaQueue::FreePinned(void* memory) {
  WaitForAllQueues();
  cudaFreeHost(memory);
}

// Captured is an instantiated CUDA graph.
class CudaQueue::Captured : public DeviceGraph {
 public:
  Captured(std::shared_ptr<CudaQueue> queue, cudaGraph_t graph) : queue_(std::move(queue)) {
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    CheckCall(status, "cudaGraphInstantiate");
  }
  ~Captured() override {
    queue_->WaitForAllQueues();  // it may be at work
    cudaGraphExecDestroy(graph_);
  }
  void Launch() override { DT_CUDA(cudaGraphLaunch, graph_, queue_->stream()); }

 private:
  const std::shared_ptr<CudaQueue> queue_;
  cudaGraphExec_t graph_ = nullptr;
};

// In this mode another thread, which makes batches, may allocate and wait for its events meanwhile.
std::unique_ptr<DeviceGraph> CudaQueue::Capture(const std::function<void()>& submit) {
  cudaGraph_t graph = nullptr;
  DT_CUDA(cudaStreamBeginCapture, stream(), cudaStreamCaptureModeThreadLocal);
  captured_ = true;
  try {
    submit();
  } catch (...) {
    captured_ = false;
    cudaStreamEndCapture(stream_.get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  captured_ = false;
  DT_CUDA(cudaStreamEndCapture, stream(), &graph);
  return std::make_unique<Captured>(shared_from_this(), graph);
}

void CudaQueue::Zero(void* to, size_t bytes) { DT_CUDA(cudaMemsetAsync, to, 0, bytes, stream()); }

void CudaQueue::Copy(void* to, const void* from, size_t bytes) {
  DT_CUDA(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToDevice, stream());
}

void CudaQueue::Wait() {
  RefuseIfCaptured("cudaStreamSynchronize");
  DT_CUDA(cudaStreamSynchronize, stream());
}

}  // namespace dtrain
