// CudaQueue is a CUDA stream with its library handles.  Only the CUDA module's sources may include this header, since
// it includes CUDA's.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "framework/device/device.h"

namespace dtrain {

// Throws Error (exit code 1) with the call's name if a call of CUDA, cuBLAS or cuDNN has failed:
// "cudnnBackendExecute failed: CUDNN_STATUS_EXECUTION_FAILED".  An error in a kernel is often reported only by a
// later call.
void CheckCall(cudaError_t status, const char* call);
void CheckCall(cublasStatus_t status, const char* call);
void CheckCall(cudnnStatus_t status, const char* call);

#define DT_CUDA(function, ...) ::dtrain::CheckCall(function(__VA_ARGS__), #function)

// Owns a library's handle, which `kDestroy` releases.
template <class Handle, auto kDestroy>
struct HandleDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const { kDestroy(handle); }
};
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<Handle, HandleDeleter<Handle, kDestroy>>;

// Holds host memory that a GPU copies from and to asynchronously.
class PinnedMemory {
 public:
  // Returns at least `bytes` of memory, valid until the next call.
  void* Room(size_t bytes) {
    if (bytes > bytes_) {
      const size_t most =
          // There is spare room, since sizes vary a little.
          std::max(bytes, bytes_ + bytes_ / 2);
      memory_.reset();
      bytes_ = 0;
      void* memory = nullptr;
      DT_CUDA(cudaMallocHost, &memory, most);
      memory_.reset(memory);
      bytes_ = most;
    }
    return memory_.get();
  }

 private:
  Owned<void*, &cudaFreeHost> memory_;
  size_t bytes_ = 0;
};

class CudaQueue : public DeviceQueue, public std::enable_shared_from_this<CudaQueue> {
 public:
  // Opens a queue on GPU `index`.  Throws ConfigError if there is no GPU of that number.
  CudaQueue(int index, Precision precision);
  ~CudaQueue() override;

  ReadyEvent Record() override;
  std::shared_ptr<DeviceQueue> Another() override {
    return std::make_shared<CudaQueue>(index_, precision_);
  }
  void After(DeviceQueue& other) override;
  void* Allocate(size_t bytes) override;
  void Free(void* memory) override;
  size_t FreeBytes() override;
  bool Pin(void* memory, size_t bytes) override;
  void Unpin(void* memory) override;
  void* AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory) override;
  void Upload(void* to, const void* from, size_t bytes) override;
  void Download(void* to, const void* from, size_t bytes) override;
  bool SharesMemoryWith(const DeviceQueue& other) const override {
    return static_cast<const CudaQueue&>(other).index_ == index_;
  }
  std::string Uuid() const override;
  PeerMemory Share(const void* memory) override;
  std::shared_ptr<void> Map(const PeerMemory& memory) override;
  void* NativeStream() override { return stream(); }
  std::unique_ptr<DeviceGraph> Capture(const std::function<void()>& submit) override;
  int64_t memory_version() const override { return memory_version_; }

  // Zero and Copy work on device memory, in the queue's order.
  void Zero(void* to, size_t bytes);
  void Copy(void* to, const void* from, size_t bytes);

  // Also makes this queue's GPU the calling thread's current one: CUDA launches kernels only on that, and a new thread
  // has GPU 0.
  cudaStream_t stream() const {
    DT_CUDA(cudaSetDevice, index_);
    return stream_.get();
  }
  // Created on first use: not every queue computes products.
  cublasHandle_t blas();
  cudnnHandle_t dnn();
  Precision precision() const { return precision_; }

  // Returns memory for one of a product's two factors (`factor` 0 or 1) in 16 bits, valid until the next call for that
  // factor.
  void* FactorRoom(int factor, size_t bytes);

  // Waits until all submitted work is done.  For kernels whose result depends on other workers.
  void Wait();

 private:
  class Mark;
  class Captured;

  void WaitForAllQueues() const;
  // CUDA would capture a copy with the host's address of now.  Throws Error.
  void RefuseIfCaptured(const char* call) const;
  cudaEvent_t TakeEvent();
  void GiveBack(cudaEvent_t event);

  const int index_;
  const Precision precision_;
  Owned<cudaStream_t, &cudaStreamDestroy> stream_;
  Owned<cublasHandle_t, &cublasDestroy> blas_;
  void* blas_workspace_ = nullptr;
  Owned<cudnnHandle_t, &cudnnDestroy> dnn_;
  struct Room {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  Room factors_[2];
  bool captured_ = false;                  // by Capture, at the moment
  int64_t memory_version_ = 0;             // of factors_
  std::mutex mutex_;                       // guards spare_events_: any thread may drop a mark
  std::vector<cudaEvent_t> spare_events_;  // reused: each step needs one per gradient
};

// Returns the queue of a device of kind kCuda.
inline CudaQueue& QueueOf(const Device& device) { return static_cast<CudaQueue&>(*device.queue); }

}  // namespace dtrain
