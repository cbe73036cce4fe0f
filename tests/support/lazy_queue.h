// A device whose work counts as done when somebody waits for it, and not before.  Its memory is a part of the
// machine's, so that the CPU's kernels run on it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "framework/device/device.h"

namespace dtrain {

class LazyQueue : public DeviceQueue {
 public:
  ReadyEvent Record() override {
    ++recorded;
    backlog = std::max(backlog, recorded - done);
    return ReadyEvent(std::make_shared<Mark>(*this, recorded));
  }

  void* Allocate(size_t bytes) override {
    allocated += bytes;
    return std::calloc(1, bytes);
  }
  void Free(void* memory) override { std::free(memory); }
  void Upload(void* to, const void* from, size_t bytes) override {
    uploaded += bytes;
    std::memcpy(to, from, bytes);
  }
  void Download(void* to, const void* from, size_t bytes) override {
    downloaded += bytes;
    std::memcpy(to, from, bytes);
  }

  size_t allocated = 0, uploaded = 0, downloaded = 0;  // bytes
  int recorded = 0;
  int done = 0;
  int backlog = 0;  // the most that was ever to be done

 private:
  class Mark : public ReadyEvent::Mark {
   public:
    Mark(LazyQueue& queue, int number) : queue_(queue), number_(number) {}
    bool Done() const override { return queue_.done >= number_; }
    void Wait() const override { queue_.done = std::max(queue_.done, number_); }

   private:
    LazyQueue& queue_;
    const int number_;
  };
};

}  // namespace dtrain
