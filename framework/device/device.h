// Device: where memory lives and kernels run.
#pragma once

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
// everywhere, so checkpoints and what travels between ranks do not depend on it.
enum class Precision {
  kFp32,
  kBf16  // factors are rounded to bf16 (8 bits of fraction, to nearest even), sums are fp32
};

enum class DeviceKind { kCpu, kCuda };

constexpr std::string_view NameOf(DeviceKind kind) { return NameIn({"cpu", "cuda"}, kind); }

// What a device has been asked to do and does in this order, while its kernels have long returned.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  // Comes to pass when all that was asked for before is done.
  virtual ReadyEvent Record() = 0;
};

// What a kernel may know about where it runs.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int threads = 1;           // of this rank's OpenMP team; see cpu/threads.h for the one budget
  Isa isa = Isa::kBaseline;  // for our own loops
  Precision precision = Precision::kFp32;  // of products, where a kernel offers it
  DeviceQueue* queue = nullptr;            // borrowed; null: a kernel that returns has computed

  // That all it was asked for until now is done.
  ReadyEvent Record() const { return queue == nullptr ? ReadyEvent() : queue->Record(); }
};

}  // namespace dtrain
