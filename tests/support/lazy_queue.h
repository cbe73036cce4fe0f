// A device whose work is done only when a thread waits for it.  Its memory is host memory, so that the CPU's kernels
// run on it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/device/device.h"
#include "framework/device/step_graph.h"

namespace dtrain {

class LazyQueue : public DeviceQueue, public std::enable_shared_from_this<LazyQueue> {
 public:
  ReadyEvent Record() override {
    ++recorded;
    backlog = std::max(backlog, recorded - done);
    return ReadyEvent(std::make_shared<Mark>(*this, recorded));
  }

  // Returns itself: all work is done in one order.
  std::shared_ptr<DeviceQueue> Another() override { return shared_from_this(); }
  void After(DeviceQueue&) override {}
  void* Allocate(size_t bytes) override { return std::calloc(1, bytes); }
  void Free(void* memory) override { std::free(memory); }
  size_t FreeBytes() override { return SIZE_MAX; }
  bool Pin(void*, size_t) override { return false; }
  void Unpin(void*) override {}
  void* AllocatePinned(size_t bytes) override { return std::calloc(1, bytes); }
  void FreePinned(void* memory) override { std::free(memory); }
  void Upload(void* to, const void* from, size_t bytes) override {
    uploaded += bytes;
    std::memcpy(to, from, bytes);
  }
  // Copies only when a thread waits for an event recorded later.
  void Download(void* to, const void* from, size_t bytes) override {
    downloaded += bytes;
    downloads_.push_back({recorded + 1, to, from, bytes});
  }

  bool SharesMemoryWith(const DeviceQueue& other) const override { return this == &other; }
  std::string Uuid() const override { return "lazy"; }
  PeerMemory Share(const void* memory) override { return {.address = const_cast<void*>(memory)}; }
  std::shared_ptr<void> Map(const PeerMemory& memory) override {
    return {std::shared_ptr<void>(), memory.address};
  }

  void* NativeStream() override { return nullptr; }

  std::unique_ptr<DeviceGraph> Capture(const std::function<void()>&) override {
    throw Error(ExitCode::kInternal, "this queue cannot capture", "");
  }
  int64_t memory_version() const override { return 0; }

  int recorded = 0;
  int done = 0;
  int backlog = 0;                      // the largest number of pending operations
  size_t uploaded = 0, downloaded = 0;  // bytes

 private:
  struct Copy {
    int number;  // of the event recorded after it
    void* to;
    const void* from;
    size_t bytes;
  };

  void DoUntil(int number) {
    done = std::max(done, number);
    for (; !downloads_.empty() && downloads_.front().number <= done; downloads_.pop_front()) {
      const Copy& copy = downloads_.front();
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }

  class Mark : public ReadyEvent::Mark {
   public:
    Mark(LazyQueue& queue, int number) : queue_(queue), number_(number) {}
    bool Done() const override { return queue_.done >= number_; }
    void Wait() const override { queue_.DoUntil(number_); }

   private:
    LazyQueue& queue_;
    const int number_;
  };

  std::deque<Copy> downloads_;
};

// The kernels that begin and end a step; they run at once.
namespace lazy {

inline void BeginStep(const Device&, const StepState* state, const std::byte* ring,
                      std::byte* values, size_t bytes, const float* scaled) {
  DT_CHECK(scaled == nullptr) << "no loss is scaled here";
  std::memcpy(values, ring + state->step % StepGraph::kSteps * StepGraph::kValueBytes, bytes);
}
inline void EndStep(const Device&, std::span<const double* const> sums, StepResults* ring,
                    StepState* state) {
  StepResults results{.count = sums.size(), .non_finite = state->non_finite};
  for (size_t k = 0; k < sums.size(); ++k) results.sums[k] = *sums[k];
  ring[state->step++ % StepGraph::kSteps] = results;
}
inline const bool kStepKernels = AddStepKernels(DeviceKind::kCpu, {BeginStep, EndStep});

}  // namespace lazy

}  // namespace dtrain
