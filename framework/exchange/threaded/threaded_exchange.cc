#include "framework/exchange/threaded/threaded_exchange.h"

#include <sys/resource.h>

#include <utility>

namespace dtrain {
namespace {

// Lowers the priority of the computing thread below that of the exchange threads (on Linux each
// thread has its own).  It makes no difference if every rank has cores for both.  If ranks share
// cores, the workers of a protocol that never waits would otherwise leave the servers so little
// time that hundreds of gradients make one update.
void GiveWayToExchange() {
  constexpr int kNicer = 10;
  thread_local bool given = false;
  if (std::exchange(given, true)) return;
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);
}

}  // namespace

ThreadedExchange::ThreadedExchange(Transport& transport, const ExchangeSpec& spec,
                                   double stall_seconds, std::function<void()> on_thread,
                                   const Device& device)
    : transport_(transport),
      spec_(spec),
      device_(device),
      stall_(FromSeconds(stall_seconds)),
      pools_({.pinned_for = device.queue}) {
  thread_ = std::thread([this, on_thread = std::move(on_thread)] {
    try {
      on_thread();
      PutTogether();
      Publish();
      Answer(Wanted::kParts);
      Run();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      for_trainer_.notify_one();
    }
  });
  try {
    std::unique_lock lock(mutex_);
    WaitForAnswer(lock);
  } catch (...) {
    thread_.join();  // the thread has ended with that error
    throw;
  }
  GiveWayToExchange();
}

ThreadedExchange::~ThreadedExchange() {
  {
    const std::lock_guard lock(mutex_);
    posted_.quit = true;
    for_thread_.notify_one();
  }
  thread_.join();
}

// Waits until the thread has answered.  Throws the error that ended the thread, if any.
void ThreadedExchange::WaitForAnswer(std::unique_lock<std::mutex>& lock) {
  for_trainer_.wait(lock, [this] { return error_ != nullptr || wanted_ == Wanted::kNothing; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

template <class Post>
void ThreadedExchange::Ask(Wanted wanted, const Post& post) {
  std::unique_lock lock(mutex_);
  post(posted_);
  posted_.asked = true;
  wanted_ = wanted;
  for_thread_.notify_one();
  WaitForAnswer(lock);
}

// A rank without a worker has no step to begin and waits for the next boundary.
Turn ThreadedExchange::Begin(int64_t samples) {
  const Nanos start = WallNow();
  const bool worker = spec_.placement().IsWorker(transport_.rank());
  Ask(Wanted::kStepOrBoundary, [&](Events& events) {
    if (worker) events.begin = samples;
  });
  const std::lock_guard lock(mutex_);
  if (!turn_.boundary) stats_.exposed += WallNow() - start;
  return std::exchange(turn_, {});
}

// The last range is posted by End, together with the report.
void ThreadedExchange::Ready(Range range) {
  if (range.end == spec_.size()) {
    last_ = range;
    return;
  }
  const std::lock_guard lock(mutex_);
  posted_.ready.push_back(range);
  for_thread_.notify_one();
}

void ThreadedExchange::SumOverWorkers(std::span<double> values) {
  if (spec_.placement().workers == 1) return;
  Ask(Wanted::kSum, [&](Events& events) { events.sum = values; });
}

StepOutcome ThreadedExchange::End(const StepReport& report) {
  const Nanos start = WallNow();
  Ask(Wanted::kEndOfStep, [&](Events& events) { events.last = {last_, report}; });
  const std::lock_guard lock(mutex_);
  stats_.exposed += WallNow() - start;
  return outcome_;
}

void ThreadedExchange::AtBoundary(const std::function<void(Transport&)>& work) {
  Ask(Wanted::kWorkDone, [&](Events& events) { events.work = &work; });
}

void ThreadedExchange::Collect(bool with_solver) {
  AtBoundary([&](Transport& transport) { parts_->model.Collect(transport, with_solver); });
}

Exchange::Own ThreadedExchange::SaveOwn() {
  Own own;
  AtBoundary([&](Transport&) { own = {parts_->Save(), parts_->driver.Holds()}; });
  return own;
}

void ThreadedExchange::SetBuckets(const std::vector<Range>& buckets) {
  AtBoundary([&](Transport&) {
    spec_.actors.buckets = buckets;
    parts_->driver.SetBuckets(buckets);
  });
}

void ThreadedExchange::Leave() {
  AtBoundary([this](Transport&) {
    parts_->model.Drop();
    parts_->quiescence.Leave();
  });
}

Quiescence::Progress ThreadedExchange::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

ExchangeStats ThreadedExchange::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace dtrain
