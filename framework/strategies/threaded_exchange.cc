#include "framework/strategies/threaded_exchange.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/comm/backoff.h"
#include "framework/core/error.h"

namespace dtrain {

ThreadedExchange::ThreadedExchange(Transport& transport, std::function<Parts(Transport&)> make,
                                   double stall_seconds)
    : transport_(transport), stall_(FromSeconds(stall_seconds)) {
  thread_ = std::thread([this, make = std::move(make)] {
    try {
      parts_ = make(transport_);
      Publish();
      Run();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      for_trainer_.notify_one();
    }
  });
  try {
    WaitFor([this] { return made_; });
  } catch (...) {
    thread_.join();  // it has ended with that error
    throw;
  }
}

ThreadedExchange::~ThreadedExchange() {
  {
    const std::lock_guard lock(mutex_);
    posted_.quit = true;
    for_thread_.notify_one();
  }
  thread_.join();
}

// Waits until `condition` holds, or throws what ended the exchange thread.
template <class Condition>
void ThreadedExchange::WaitFor(Condition condition) {
  std::unique_lock lock(mutex_);
  for_trainer_.wait(lock, [&] { return error_ != nullptr || condition(); });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

Blob ThreadedExchange::Begin() {
  {
    const std::lock_guard lock(mutex_);
    posted_.begin = true;
    started_ = ended_ = false;
    for_thread_.notify_one();
  }
  WaitFor([this] { return started_; });
  return parts_.driver->weights();
}

// The last range is sent by End, whose report rides behind it.
void ThreadedExchange::Ready(Range range) {
  const std::lock_guard lock(mutex_);
  posted_.ready.push_back(range);
  if (!parts_.driver->IsLast(range)) for_thread_.notify_one();
}

StepOutcome ThreadedExchange::End(const StepReport& report) {
  const Nanos start = WallNow();
  {
    const std::lock_guard lock(mutex_);
    posted_.last = true;
    posted_.report = report;
    for_thread_.notify_one();
  }
  WaitFor([this] { return ended_; });
  const std::lock_guard lock(mutex_);
  exposed_ += WallNow() - start;
  return parts_.driver->outcome();
}

void ThreadedExchange::AtRest(const std::function<void(Transport&)>& work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.work = &work;
    working_ = true;
    for_thread_.notify_one();
  }
  WaitFor([this] { return !working_; });
}

ExchangeStats ThreadedExchange::stats() const {
  const std::lock_guard lock(mutex_);
  return {traffic_, exposed_};
}

void ThreadedExchange::Run() {
  Backoff backoff;
  while (!taken_.quit) {
    bool moved = TakeEvents();
    moved |= parts_.driver->Progress();
    if (moved) {
      Publish();
      backoff.Reset();
    } else if (parts_.driver->Busy()) {
      backoff.Pause();
    }
    WatchForStall(moved);
  }
}

// The last range alone is nothing to do yet.
bool ThreadedExchange::AnyPosted() const {
  const size_t held = posted_.last ? 0 : 1;
  const bool ranges = !posted_.ready.empty() &&
                      (posted_.ready.size() > held || !parts_.driver->IsLast(posted_.ready.back()));
  return posted_.begin || posted_.quit || posted_.work != nullptr || ranges;
}

// Sleeps while there are none and nothing is in flight.
bool ThreadedExchange::TakeEvents() {
  {
    std::unique_lock lock(mutex_);
    if (!parts_.driver->Busy()) for_thread_.wait(lock, [this] { return AnyPosted(); });
    if (!AnyPosted()) return false;
    std::swap(taken_, posted_);
    posted_.begin = posted_.quit = posted_.last = false;
    posted_.work = nullptr;
    posted_.ready.clear();
    if (!taken_.last && !taken_.ready.empty() && parts_.driver->IsLast(taken_.ready.back())) {
      posted_.ready.push_back(taken_.ready.back());
      taken_.ready.pop_back();
    }
  }
  Handle(taken_);
  return true;
}

void ThreadedExchange::Handle(const Events& events) {
  Driver& driver = *parts_.driver;
  if (events.begin) {
    step_begin_ = WallNow();
    driver.Begin();
  }
  for (const Range& range : events.ready) {
    if (driver.IsLast(range)) {
      driver.ReadyLast(range, events.report);
    } else {
      driver.Ready(range);
    }
  }
  if (events.work == nullptr) return;
  (*events.work)(transport_);
  const std::lock_guard lock(mutex_);
  working_ = false;
}

void ThreadedExchange::Publish() {
  const std::lock_guard lock(mutex_);
  const bool fresh = !posted_.begin;  // else the driver still speaks of the step before
  const bool ended = fresh && parts_.driver->StepEnded();
  if (ended && !ended_) longest_step_ = std::max(longest_step_, WallNow() - step_begin_);
  made_ = true;
  started_ = fresh && parts_.driver->StepStarted();
  ended_ = ended;
  traffic_ = parts_.driver->traffic();
  for_trainer_.notify_one();
}

Nanos ThreadedExchange::StallLimit() const {
  return stall_ > 0 ? stall_ : std::max<Nanos>(FromSeconds(30), 20 * longest_step_);
}

void ThreadedExchange::WatchForStall(bool moved) {
  const Nanos now = WallNow();
  if (moved || !parts_.driver->Busy() || last_move_ == 0) {
    last_move_ = now;
  } else if (now - last_move_ > StallLimit()) {
    throw StalledError(
        fmt::format("rank {} of {}: nothing has moved for {:.0f} s | {}", transport_.rank(),
                    transport_.size(), ToSeconds(now - last_move_), parts_.driver->Describe()),
        "a rank is gone or much slower; stall_seconds sets the limit");
  }
}

}  // namespace dtrain
