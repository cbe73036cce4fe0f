// A device whose work counts as done when somebody waits for it, and not before.
#pragma once

#include <algorithm>
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
