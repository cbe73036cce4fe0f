// CudaQueue: a GPU's stream with the library handles that work on it.  For the CUDA module's sources
// only: it includes CUDA's headers.
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

// Throws Error (exit code 1) where a call of CUDA, cuBLAS or cuDNN has failed, naming it:
// "cudnnConvolutionForward failed: CUDNN_STATUS_EXECUTION_FAILED".  What a kernel did wrong is often
// told by a later call.
void CheckCall(cudaError_t status, const char* call);
void CheckCall(cublasStatus_t status, const char* call);
void CheckCall(cudnnStatus_t status, const char* call);

#define DT_CUDA(function, ...) ::dtrain::CheckCall(function(__VA_ARGS__), #function)

// Owns what a library made; `kDestroy` gives it back.
template <class Handle, auto kDestroy>
struct HandleDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const { kDestroy(handle); }
};
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<Handle, HandleDeleter<Handle, kDestroy>>;

// Memory of the machine that a GPU copies from and to while the thread that asked goes on.
class PinnedMemory {
 public:
  // At least so much, until the next call.
  void* Room(size_t bytes) {
    if (bytes > bytes_) {
      const size_t most =
          std::max(bytes, bytes_ + bytes_ / 2);  // what is asked for differs a little
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
  // Of GPU `index`.  Throws ConfigError where there is none of that number.
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
  void Upload(void* to, const void* from, size_t bytes) override;
  void Download(void* to, const void* from, size_t bytes) override;

  // Within the device's memory, in the queue's order.
  void Zero(void* to, size_t bytes);
  void Copy(void* to, const void* from, size_t bytes);

  // Of the thread that calls, this queue's GPU is the current one from then on: CUDA launches kernels on no
  // other, and a thread begins with GPU 0.
  cudaStream_t stream() const {
    DT_CUDA(cudaSetDevice, index_);
    return stream_.get();
  }
  // Made when first asked for: not every queue computes products.
  cublasHandle_t blas();
  cudnnHandle_t dnn();
  Precision precision() const { return precision_; }

  // Memory for a product's factor in bf16, one for each of the two; until it is asked for again.
  void* FactorRoom(int factor, size_t bytes);

  // All that was asked for is done.  For kernels whose result depends on other workers.
  void Wait();

 private:
  class Mark;

  void WaitForAllQueues() const;
  cudaEvent_t TakeEvent();
  void GiveBack(cudaEvent_t event);

  const int index_;
  const Precision precision_;
  Owned<cudaStream_t, &cudaStreamDestroy> stream_;
  Owned<cublasHandle_t, &cublasDestroy> blas_;
  Owned<cudnnHandle_t, &cudnnDestroy> dnn_;
  struct Room {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  Room factors_[2];
  std::mutex mutex_;                       // guards spare_events_: marks are dropped on any thread
  std::vector<cudaEvent_t> spare_events_;  // an event a gradient and step, made once
};

// The queue of a device of kind kCuda.
inline CudaQueue& QueueOf(const Device& device) { return static_cast<CudaQueue&>(*device.queue); }

}  // namespace dtrain
