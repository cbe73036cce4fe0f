// Device: the place where memory is and kernels run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/isa.h"
#include "framework/core/text.h"

namespace dtrain {

// ReadyEvent marks a point in a device's queue of work, such as "this gradient is written".  It is a value; any thread
// may query it.
class ReadyEvent {
 public:
  // Mark is the interface of an asynchronous device's event.
  class Mark {
   public:
    virtual ~Mark() = default;
    virtual bool Done() const = 0;
    virtual void Wait() const = 0;  // until Done()
  };

  // Makes an event that is done: it is sufficient for a device whose kernels have finished when they return.
  ReadyEvent() = default;
  explicit ReadyEvent(std::shared_ptr<const Mark> mark) : mark_(std::move(mark)) {}

  bool Done() const { return mark_ == nullptr || mark_->Done(); }
  void Wait() const {
    if (mark_ != nullptr) mark_->Wait();
  }

 private:
  std::shared_ptr<const Mark> mark_;
};

// Precision is the number format of large matrix products' factors (`precision` of a run).
//
// Parameters, their gradients, statistics and the solver are fp32 everywhere, so checkpoints and messages between ranks
// do not depend on it.  Products accumulate in fp32 in every format.  README.md lists its meaning on each device, and
// where images between layers have 16 bits as well.
enum class Precision {
  kFp32,
  kTf32,  // factors keep 10 bits of fraction: the GPU's tensor cores
  kBf16,  // factors are rounded to bf16 (7 bits of fraction, to nearest even)
  kFp16   // to fp16 (10 bits, magnitudes up to 65504); the loss is scaled (loss_scale.h)
};

constexpr std::string_view NameOf(Precision precision) {
  return NameIn({"fp32", "tf32", "bf16", "fp16"}, precision);
}

enum class DeviceKind { kCpu, kCuda };

constexpr std::string_view NameOf(DeviceKind kind) { return NameIn({"cpu", "cuda"}, kind); }

// Names memory of a device to the processes of the same machine (DeviceQueue::Share).  It is a value that can be sent.
struct PeerMemory {
  std::array<std::byte, 64> handle = {};  // of the allocation, as the device's library makes it
  int64_t offset = 0;                     // bytes from the begin of the allocation
  int64_t process = 0;                    // that owns it: a number that no other process has
  void* address = nullptr;                // in that process
};

// Work that a device has recorded, and does again with each Launch, behind what its queue has received by then.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void Launch() = 0;
};

// An asynchronous device with its own memory, and its queue of work: it executes requests in order, after the calls
// have returned.  Only one thread at a time may submit work; any may free memory.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Returns an event that is done when all work submitted so far is.
  virtual ReadyEvent Record() = 0;

  // Returns another queue of the same device, for another thread or for concurrent work.
  virtual std::shared_ptr<DeviceQueue> Another() = 0;
  // Work submitted from now on starts only when all work that `other`, a queue of the same device, has received so far
  // is done.  The call itself does not wait.
  virtual void After(DeviceQueue& other) = 0;

  // Returns device memory, zeroed and 256-byte aligned.  Throws UsageError with the wanted and the free bytes if there
  // is no room.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;  // takes effect after all work submitted so far
  virtual size_t FreeBytes() = 0;       // unallocated device memory

  // Locks host memory until Unpin, so that the device copies from and to it asynchronously; copies of other memory may
  // block the calling thread.  Returns false if the memory cannot be locked.
  virtual bool Pin(void* memory, size_t bytes) = 0;
  virtual void Unpin(void* memory) = 0;

  // Returns locked host memory that kernels read and write at the same address.
  virtual void* AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;

  // Copy to and from the device's memory.  The host memory must be left alone until an event that was recorded
  // afterwards is done.
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  virtual void Download(void* to, const void* from, size_t bytes) = 0;

  // True if kernels of this queue can use the memory of `other`: it is a queue of the same device.
  virtual bool SharesMemoryWith(const DeviceQueue& other) const = 0;
  // Returns what no other device in the world is called.
  virtual std::string Uuid() const = 0;
  // Returns a name for memory that Allocate has returned, or for a place in it.  Throws Error if it cannot be shared.
  virtual PeerMemory Share(const void* memory) = 0;
  // Returns where kernels of this queue find memory that a process of this machine has named, on this device or another,
  // without the offset.  It is mapped as long as the result lives, and its owner must not free it before.  Throws Error
  // if this device does not reach it.
  virtual std::shared_ptr<void> Map(const PeerMemory& memory) = 0;

  // Returns the stream of the device's library, for another library that submits work to it (NCCL): a cudaStream_t.  The
  // calling thread's current device is then this one.
  virtual void* NativeStream() = 0;

  // Returns what `submit` submits to this queue: kernels, and copies within the device's memory.  None of it is done.
  // Throws Error if it is something else, or if it waits or allocates.
  virtual std::unique_ptr<DeviceGraph> Capture(const std::function<void()>& submit) = 0;
  // Changes whenever the queue replaces memory that it lends to kernels: captured work has the old addresses.
  virtual int64_t memory_version() const = 0;
};

// Holds the facts that a kernel may use about its device.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int threads = 1;                         // size of this rank's OpenMP team (cpu/threads.h)
  Isa isa = Isa::kBaseline;                // for dtrain's own loops
  Precision precision = Precision::kFp32;  // of products, if a kernel supports it
  // Null: kernels work on host memory, and are done when they return.
  std::shared_ptr<DeviceQueue> queue = {};

  // Returns an event that is done when all work submitted so far is.
  ReadyEvent Record() const { return queue == nullptr ? ReadyEvent() : queue->Record(); }
};

}  // namespace dtrain
