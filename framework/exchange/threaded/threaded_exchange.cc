#include "framework/exchange/threaded/threaded_exchange.h"

#include <sched.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "framework/comm/backoff.h"
#include "framework/core/log.h"

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

// Tells on rank 0 where the gradients are added, if a device was asked.
bool StaysThere(const ExchangeSpec& spec, const Device& device, Transport& transport) {
  std::string why_not;
  const bool stays = StaysOnDevice(spec, device, transport, &why_not);
  if (transport.rank() > 0) return stays;
  if (stays) {
    log::Info("the ranks add their gradients in the memory of the GPU, by {}", spec.collective);
  } else if (!why_not.empty()) {
    log::Warning("weights and gradients pass through host memory: {}", why_not);
  }
  return stays;
}

constexpr Nanos kIdleLook = 100'000'000;  // how often an idle rank polls for a StallWatch's Ask

}  // namespace

ThreadedExchange::ThreadedExchange(Transport& transport, const ExchangeSpec& spec,
                                   double stall_seconds, std::function<void()> on_thread,
                                   const Device& device)
    : transport_(transport), spec_(spec), device_(device), stall_(FromSeconds(stall_seconds)) {
  thread_ = std::thread([this, on_thread = std::move(on_thread)] {
    try {
      on_thread();
      PutTogether();
      Publish();
      Answer(Wanted::kParts);
      Run();
    } catch (...) {
      if (parts_ != nullptr) parts_->dependencies.collective.reset();  // as Abandon does
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

ThreadedExchange::~ThreadedExchange() { EndThread(); }

void ThreadedExchange::EndThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    posted_.quit = true;
    for_thread_.notify_one();
  }
  thread_.join();
}

void ThreadedExchange::Abandon() {
  if (steps_ == nullptr) return;  // nothing in a device's queue waits for other ranks
  EndThread();
  if (parts_ != nullptr) parts_->dependencies.collective.reset();
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
void ThreadedExchange::Ready(Range range, const ReadyEvent& written) {
  if (range.end == spec_.size()) {
    last_ = {range, written};
    return;
  }
  const std::lock_guard lock(mutex_);
  posted_.ready.push_back({range, written});
  for_thread_.notify_one();
}

void ThreadedExchange::SumOverWorkers(std::span<double> values) {
  if (spec_.placement().workers == 1) return;
  Ask(Wanted::kSum, [&](Events& events) { events.sum = values; });
}

StepOutcome ThreadedExchange::End(const StepReport& report) {
  const Nanos start = WallNow();
  Ask(Wanted::kEndOfStep, [&](Events& events) { events.last = {last_, report}; });
  last_ = {};
  const std::lock_guard lock(mutex_);
  stats_.exposed += WallNow() - start;
  return outcome_;
}

void ThreadedExchange::AtBoundary(const std::function<void(Transport&)>& work) {
  Ask(Wanted::kWorkDone, [&](Events& events) { events.work = &work; });
}

void ThreadedExchange::Collect(bool with_solver) {
  AtBoundary([&](Transport& transport) {
    if (steps_ != nullptr) {
      parts_->dependencies.collective->Rest();
      transport.Barrier();  // no rank ends, and frees what another has mapped
    }
    parts_->model.Collect(transport, with_solver);
  });
}

Exchange::Own ThreadedExchange::SaveOwn() {
  Own own;
  AtBoundary([&](Transport&) { own = {parts_->Save(), parts_->driver.Holds()}; });
  return own;
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

void ThreadedExchange::PutTogether() {
  Device own = device_;
  if (StaysThere(spec_, device_, transport_)) {
    own.queue = device_.queue->Another();  // for this thread
    spec_.actors.whole_update = true;      // one kernel call, not one for each bucket
    pools_ = std::make_unique<BlobPools>(BlobMemory{.device = own});
    steps_ = std::make_unique<StepGraph>(own);
  } else {
    pools_ = std::make_unique<BlobPools>(BlobMemory{.pinned_for = device_.queue});
  }
  RankDependencies dependencies = DependenciesOver(transport_, spec_, clock_, *pools_, device_);
  dependencies.steps = steps_.get();
  parts_ = std::make_unique<RankParts>(spec_, transport_.rank(), std::move(dependencies));
  if (steps_ != nullptr) own.Record().Wait();  // the zeroed memory is visible to the net's queue
  Driver& driver = parts_->driver;
  sums_ = std::make_unique<SummedMessages>(driver.service(), spec_.placement().workers,
                                           transport_.rank(), [this] { Answer(Wanted::kSum); });
  stall_watch_ = std::make_unique<StallWatch>(driver, spec_.placement(), clock_, stall_,
                                              [this] { return Computing(); });
}

// True if this rank may get messages, for which it must poll, since a message does not wake a
// thread.  Servers get them from workers, and workers at least from Quiescence (Hold).
bool ThreadedExchange::Listens() const {
  return !spec_.traits().collectives && !parts_->quiescence.reached();
}

void ThreadedExchange::Run() {
  Backoff backoff;
  while (!taken_.quit) {
    const bool moved = Step();
    if (moved) {
      Publish();
      backoff.Reset();
    } else if (parts_->driver.Busy() || Listens() || sums_->pending() || !unwritten_.empty() ||
               last_one_) {
      Sleep(backoff.NextSleep(WallNow()));
    } else {
      Sleep(kIdleLook);
    }
    WatchForStall(moved);
  }
  FinishSends();
}

// At a boundary messages are not read: ranks that have left it may already send some.
bool ThreadedExchange::Step() {
  bool moved = TakeEvents();
  moved |= PassOnReady();
  Driver& driver = parts_->driver;
  Quiescence& quiescence = parts_->quiescence;
  if (!quiescence.reached()) moved |= MoveDriver();
  if (driver.TakeStarted()) {
    step_begin_ = WallNow();
    quiescence.StepStarts(samples_);
    if (steps_ != nullptr) steps_->Begin();
    moved = true;
  }
  if (steps_ != nullptr && driver.stage() == StepStage::kEnded) UpdateOnDevice();
  if (driver.TakeEnded()) {
    stall_watch_->StepTook(WallNow() - step_begin_);
    quiescence.StepEnded();
    moved = true;
  }
  return moved;
}

bool ThreadedExchange::MoveDriver() {
  Driver& driver = parts_->driver;
  if (parts_->timeline == nullptr) return driver.Progress();
  const EffectQueue& effects = driver.effects();
  const int64_t written = effects.done().bytes_written, selected = effects.done().selection_slices;
  const Nanos begin = WallNow();
  const bool moved = driver.Progress();
  const int64_t bytes = effects.done().bytes_written - written;
  if (effects.done().selection_slices > selected) {
    parts_->timeline->Selected(begin, WallNow(), bytes);
  } else if (bytes > 0 && steps_ == nullptr) {
    parts_->timeline->Arithmetic(begin, WallNow(), bytes);
  }
  return moved;
}

void ThreadedExchange::Sleep(Nanos time) {
  if (time == 0) {
    ::sched_yield();
    return;
  }
  std::unique_lock lock(mutex_);
  for_thread_.wait_for(lock, std::chrono::nanoseconds(time), [this] { return posted_.any(); });
}

bool ThreadedExchange::TakeEvents() {
  {
    const std::lock_guard lock(mutex_);
    if (!posted_.any()) return false;
    std::swap(taken_, posted_);
    posted_.Clear();
  }
  Handle(taken_);
  return true;
}

void ThreadedExchange::Handle(const Events& events) {
  Driver& driver = parts_->driver;
  if (events.begin) {
    samples_ = *events.begin;
    if (!parts_->quiescence.reached()) driver.Begin();
  }
  unwritten_.insert(unwritten_.end(), events.ready.begin(), events.ready.end());
  if (events.last) last_one_ = events.last;
  PassOnReady();
  if (!events.sum.empty()) sums_->Begin(events.sum);
  if (events.work == nullptr) return;
  (*events.work)(transport_);
  Answer(Wanted::kWorkDone);
}

// Passes on the ranges that have been written.  Returns true if there were any.
bool ThreadedExchange::PassOnReady() {
  Driver& driver = parts_->driver;
  bool moved = false;
  for (; !unwritten_.empty() && unwritten_.front().written.Done(); unwritten_.pop_front()) {
    driver.Ready(unwritten_.front().range);
    moved = true;
  }
  if (!last_one_ || !unwritten_.empty() || !last_one_->range.written.Done()) return moved;
  const LastRange last = *std::exchange(last_one_, std::nullopt);
  driver.ReadyLast(last.range.range, last.report);
  return true;
}

// Makes the updates that the driver has asked for.  All ranks have the same sums, and see a NaN in the same step.
void ThreadedExchange::UpdateOnDevice() {
  const Nanos begin = WallNow();
  steps_->Launch();
  for (const StepResults& of : steps_->Wait()) {
    if (of.non_finite.step != NonFinitePlace::kNone) parts_->driver.NoteNotFinite();
  }
  if (parts_->timeline == nullptr) return;
  const int64_t bytes = spec_.size() * static_cast<int64_t>(sizeof(float));
  parts_->timeline->Arithmetic(begin, WallNow(), bytes);
}

void ThreadedExchange::Publish() {
  const std::lock_guard lock(mutex_);
  progress_ = parts_->quiescence.progress();
  stats_.traffic = parts_->driver.traffic();
  stats_.compression = parts_->driver.compression();
  if (parts_->quiescence.reached()) {
    stats_.protocol = parts_->driver.Report().Since(parts_->protocol_before);
    stats_.worker = parts_->driver.WorkerReport().Since(parts_->worker_before);
  }
  // Posted events must be handled before the driver's state can answer the trainer.
  if (posted_.any() || !Answered(wanted_)) return;
  wanted_ = Wanted::kNothing;
  for_trainer_.notify_one();
}

// Returns true, and stores the answer, if the driver or quiescence have reached what is wanted.
// The caller holds mutex_.
bool ThreadedExchange::Answered(Wanted wanted) {
  Driver& driver = parts_->driver;
  if (wanted == Wanted::kStepOrBoundary && parts_->quiescence.reached()) {
    turn_ = {.boundary = true, .state = parts_->quiescence.state()};
    return true;
  }
  if (wanted == Wanted::kStepOrBoundary && driver.stage() == StepStage::kRunning) {
    turn_ = {.weights = driver.weights()};
    gradients_ = parts_->gradients();
    return true;
  }
  if (wanted == Wanted::kEndOfStep && driver.stage() == StepStage::kNone) {
    outcome_ = driver.outcome();
    return true;
  }
  return false;
}

// Answers the trainer if it waits for `wanted`.  Answers that depend on the driver's state are
// given by Publish.
void ThreadedExchange::Answer(Wanted wanted) {
  const std::lock_guard lock(mutex_);
  if (wanted_ == wanted) wanted_ = Wanted::kNothing;
  for_trainer_.notify_one();
}

// Completes the sends of the last messages, which other ranks may wait for.
void ThreadedExchange::FinishSends() {
  MessageChannel* const channel = parts_->dependencies.channel.get();
  Backoff backoff;
  while (channel != nullptr && channel->Sending()) {
    channel->Next();
    backoff.Pause();
  }
}

bool ThreadedExchange::Computing() const {
  return parts_->driver.stage() == StepStage::kRunning && !sums_->pending();
}

// True if this rank needs something from others: an admission, a sum, an answer or their
// quiescence.
bool ThreadedExchange::Expects() const {
  if (parts_->quiescence.reached()) return false;
  const Driver& driver = parts_->driver;
  const bool waits_for_boundary = driver.held() && !Computing();
  const bool waits_in_step =
      driver.stage() != StepStage::kNone && driver.stage() != StepStage::kRunning;
  return driver.Busy() || sums_->pending() || waits_in_step || waits_for_boundary;
}

void ThreadedExchange::WatchForStall(bool moved) {
  if (moved || !Expects()) return stall_watch_->Moved();
  stall_watch_->NothingMoved([this] {
    const bool moves = Step();
    if (moves) Publish();
    return moves;
  });
}

}  // namespace dtrain
