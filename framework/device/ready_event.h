// ReadyEvent: a point in what a device has been asked to do, such as "this gradient is written".  A
// value; any thread may ask.
#pragma once

#include <memory>
#include <utility>

namespace dtrain {

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

}  // namespace dtrain
