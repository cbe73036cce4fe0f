#include "framework/exchange/threaded/threaded_exchange.h"

#include <utility>

namespace dtrain {

// Waits until `condition` holds, or throws what ended the exchange thread.
template <class Condition>
void ThreadedExchange::WaitFor(Condition condition) {
  std::unique_lock lock(mutex_);
  for_trainer_.wait(lock, [&] { return error_ != nullptr || condition(); });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

ThreadedExchange::ThreadedExchange(Transport& transport, const RankSetup& setup,
                                   double stall_seconds, std::function<void()> on_thread)
    : transport_(transport),
      placement_(setup.actors.placement),
      whole_{0, setup.layout->size()},
      stall_(FromSeconds(stall_seconds)) {
  thread_ = std::thread([this, &setup, on_thread = std::move(on_thread)] {
    try {
      on_thread();
      PutTogether(setup);
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

Turn ThreadedExchange::Begin(int64_t samples) {
  const Nanos start = WallNow();
  {
    const std::lock_guard lock(mutex_);
    posted_.begin = placement_.IsWorker(transport_.rank());
    posted_.samples = samples;
    started_ = ended_ = false;
    for_thread_.notify_one();
  }
  WaitFor([this] { return started_ || reached_; });
  const std::lock_guard lock(mutex_);
  if (reached_) return {.rest = true, .state = parts_->rest->state()};
  stats_.exposed += WallNow() - start;
  return {.weights = std::move(weights_)};
}

// The last range is sent by End, whose report rides behind it.
void ThreadedExchange::Ready(Range range) {
  const std::lock_guard lock(mutex_);
  posted_.ready.push_back(range);
  if (range.end != whole_.end) for_thread_.notify_one();
}

void ThreadedExchange::SumOverWorkers(std::span<double> values) {
  if (placement_.workers == 1) return;
  {
    const std::lock_guard lock(mutex_);
    posted_.sum = values;
    summing_ = true;
    for_thread_.notify_one();
  }
  WaitFor([this] { return !summing_; });
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
  stats_.exposed += WallNow() - start;
  return outcome_;
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

void ThreadedExchange::Collect(bool with_solver) {
  AtRest([&](Transport& transport) { parts_->model->Collect(transport, with_solver); });
}

void ThreadedExchange::Leave() {
  AtRest([this](Transport&) {
    parts_->model->Drop();
    parts_->rest->Leave();
  });
}

Rest::Told ThreadedExchange::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

ExchangeStats ThreadedExchange::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace dtrain
