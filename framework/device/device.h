// Device: where memory lives and kernels run.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "framework/core/isa.h"
#include "framework/core/text.h"

namespace dtrain {

// ReadyEvent: a point in what a device has been asked to do, such as "this gradient is written".  A
// value; any thread may ask.
class ReadyEvent {
 public:
  // What a device that is asked for work before it does it has to answer.
  class Mark {
   public:
    virtual ~Mark() = default;
    virtual bool Done() const = 0;
    virtual void Wait() const = 0;  // until Done()
  };

  // Has come to pass: all that there is to know about a device whose kernels have computed when
  // they return.
  ReadyEvent() = default;
  explicit ReadyEvent(std::shared_ptr<const Mark> mark) : mark_(std::move(mark)) {}

  bool Done() const { return mark_ == nullptr || mark_->Done(); }
  void Wait() const {
    if (mark_ != nullptr) mark_->Wait();
  }

 private:
  std::shared_ptr<const Mark> mark_;
};

// Precision: the numbers that large products are computed with (`precision` of a run).
//
// It is about products only: parameters, activations, gradients, statistics and the solver are fp32
// everywhere, so checkpoints and what travels between ranks do not depend on it.  Sums are fp32 in
// all; README.md has what each means on each device.
enum class Precision {
  kFp32,
  kTf32,  // factors keep 10 bits of fraction: the GPU's tensor cores
  kBf16   // factors are rounded to bf16 (8 bits of fraction, to nearest even)
};

enum class DeviceKind { kCpu, kCuda };

constexpr std::string_view NameOf(DeviceKind kind) { return NameIn({"cpu", "cuda"}, kind); }

// A device with memory of its own, and what it has been asked to do: it does this in order, while
// its kernels have long returned.  One thread at a time asks; any may free.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Comes to pass when all that was asked for before is done.
  virtual ReadyEvent Record() = 0;

  // One of the same device: for another thread, or for work beside this one's.
  virtual std::shared_ptr<DeviceQueue> Another() = 0;
  // What is asked for from now on is begun when all that `other`, of the same device, was asked for before is
  // done.  Nobody waits meanwhile.
  virtual void After(DeviceQueue& other) = 0;

  // Memory that its kernels work on and nobody else looks at; zeroed, 256-byte aligned.  Throws
  // UsageError where there is no room: what was wanted, and how much is left.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;  // when all that was asked for before is done
  virtual size_t FreeBytes() = 0;       // that nobody has taken

  // From now until Unpin the device copies from and to this memory of the machine by itself; what is not
  // pinned may hold up the thread that asks for a copy.  False where that cannot be had.
  virtual bool Pin(void* memory, size_t bytes) = 0;
  virtual void Unpin(void* memory) = 0;

  // Copies into the device's memory, and out of it.  The memory outside is left alone until an
  // event that was recorded behind has come to pass.
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  virtual void Download(void* to, const void* from, size_t bytes) = 0;
};

// What a kernel may know about where it runs.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int threads = 1;           // of this rank's OpenMP team; see cpu/threads.h for the one budget
  Isa isa = Isa::kBaseline;  // for our own loops
  Precision precision = Precision::kFp32;  // of products, where a kernel offers it
  // Null: kernels work on everybody's memory, and have computed when they return.
  std::shared_ptr<DeviceQueue> queue = {};

  // That all it was asked for until now is done.
  ReadyEvent Record() const { return queue == nullptr ? ReadyEvent() : queue->Record(); }
};

}  // namespace dtrain
