// A device whose work is done only when a thread waits for it.  Its memory is host memory, so that the CPU's kernels
// run on it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

#include "framework/device/device.h"

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
  void Upload(void* to, const void* from, size_t bytes) override {
    uploaded += bytes;
    std::memcpy(to, from, bytes);
  }
  // Copies only when a thread waits for an event recorded later.
  void Download(void* to, const void* from, size_t bytes) override {
    downloaded += bytes;
    downloads_.push_back({recorded + 1, to, from, bytes});
  }

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

}  // namespace dtrain
