// ThreadedExchange, what the exchange thread does.
#include <sched.h>

#include <chrono>
#include <utility>

#include "framework/comm/backoff.h"
#include "framework/exchange/threaded/threaded_exchange.h"

namespace dtrain {
namespace {

constexpr Nanos kIdleLook = 100'000'000;  // how often an idle rank looks for questions

}  // namespace

void ThreadedExchange::PutTogether(const RankSetup& setup) {
  parts_ = std::make_unique<RankParts>(setup, transport_);
  Driver& driver = *parts_->driver;
  sums_ =
      std::make_unique<SumLetters>(driver, placement_, transport_.rank(), [this] { SumCame(); });
  stall_watch_ =
      std::make_unique<StallWatch>(driver, placement_, transport_, parts_->clock, stall_);
  driver.OnService([this](const Letter& letter) {
    if (stall_watch_->OnLetter(letter, Computing()) || sums_->OnLetter(letter)) return;
    parts_->rest->OnMessage(letter.message);
  });
}

// Servers must hear, and so must workers that others may tell to pause.
bool ThreadedExchange::Listens() const {
  return placement_.servers > 0 && !parts_->rest->reached();
}

void ThreadedExchange::Run() {
  Backoff backoff;
  while (!taken_.quit) {
    const bool moved = Step();
    if (moved) {
      Publish();
      backoff.Reset();
    } else if (parts_->driver->Busy() || Listens() || sums_->pending()) {
      Wait(backoff.NextSleep(WallNow()));
    } else {
      Wait(kIdleLook);
    }
    WatchForStall(moved);
  }
  FinishSends();
}

// At rest letters wait: those who have left it may already be writing.
bool ThreadedExchange::Step() {
  bool moved = TakeEvents();
  if (!parts_->rest->reached()) moved |= MoveDriver();
  Driver& driver = *parts_->driver;
  if (step_open_ && !step_running_ && driver.StepStarted()) {
    step_running_ = true;
    step_begin_ = WallNow();
    parts_->rest->StepStarts(samples_);
    moved = true;
  }
  if (step_running_ && driver.StepEnded()) {
    step_open_ = step_running_ = step_closing_ = false;
    stall_watch_->StepTook(WallNow() - step_begin_);
    parts_->rest->StepEnded(driver.outcome());
    moved = true;
  }
  return moved;
}

bool ThreadedExchange::MoveDriver() {
  Driver& driver = *parts_->driver;
  if (parts_->timeline == nullptr) return driver.Progress();
  const int64_t written = driver.bytes_written();
  const Nanos begin = WallNow();
  const bool moved = driver.Progress();
  if (driver.bytes_written() > written) {
    parts_->timeline->Arithmetic(begin, WallNow(), driver.bytes_written() - written);
  }
  return moved;
}

void ThreadedExchange::Wait(Nanos sleep) {
  if (sleep == 0) {
    ::sched_yield();
    return;
  }
  std::unique_lock lock(mutex_);
  for_thread_.wait_for(lock, std::chrono::nanoseconds(sleep), [this] { return AnyPosted(); });
}

// The last range alone is nothing to do yet.
bool ThreadedExchange::AnyPosted() const {
  const size_t held = posted_.last ? 0 : 1;
  const bool ranges = !posted_.ready.empty() &&
                      (posted_.ready.size() > held || posted_.ready.back().end != whole_.end);
  return posted_.begin || posted_.quit || posted_.work != nullptr || !posted_.sum.empty() || ranges;
}

bool ThreadedExchange::TakeEvents() {
  {
    const std::lock_guard lock(mutex_);
    if (!AnyPosted()) return false;
    std::swap(taken_, posted_);
    posted_.begin = posted_.quit = posted_.last = false;
    posted_.work = nullptr;
    posted_.sum = {};
    posted_.ready.clear();
    if (!taken_.last && !taken_.ready.empty() && taken_.ready.back().end == whole_.end) {
      posted_.ready.push_back(taken_.ready.back());
      taken_.ready.pop_back();
    }
  }
  Handle(taken_);
  return true;
}

void ThreadedExchange::Handle(const Events& events) {
  Driver& driver = *parts_->driver;
  if (events.begin) {
    if (!parts_->rest->reached()) {
      driver.Begin();
      step_open_ = true;
    }
    samples_ = events.samples;
  }
  for (const Range& range : events.ready) {
    if (driver.IsLast(range)) {
      step_closing_ = true;
      driver.ReadyLast(range, events.report);
    } else {
      driver.Ready(range);
    }
  }
  if (!events.sum.empty()) sums_->Begin(events.sum);
  if (events.work == nullptr) return;
  (*events.work)(transport_);
  const std::lock_guard lock(mutex_);
  working_ = false;
  reached_ = parts_->rest->reached();
}

void ThreadedExchange::Publish() {
  Driver& driver = *parts_->driver;
  const std::lock_guard lock(mutex_);
  made_ = true;
  reached_ = parts_->rest->reached();
  if (!posted_.begin) {  // else the driver still speaks of the step before
    if (step_running_ && !started_) {
      started_ = true;
      weights_ = driver.weights();
      gradients_ = driver.gradients();
    }
    if (!step_open_ && !ended_) {
      ended_ = true;
      outcome_ = driver.outcome();
    }
  }
  told_ = parts_->rest->told();
  stats_.traffic = driver.traffic();
  if (reached_) stats_.protocol = driver.Report();
  for_trainer_.notify_one();
}

// Nobody may wait for what this rank has said last.
void ThreadedExchange::FinishSends() {
  Backoff backoff;
  while (parts_->mail != nullptr && parts_->mail->Sending()) {
    parts_->mail->Next();
    backoff.Pause();
  }
}

void ThreadedExchange::SumCame() {
  const std::lock_guard lock(mutex_);
  summing_ = false;
  for_trainer_.notify_one();
}

bool ThreadedExchange::Computing() const {
  return step_running_ && !step_closing_ && !sums_->pending();
}

// This rank needs something from others: an admission, a sum, an answer, the others' rest.
bool ThreadedExchange::Expects() const {
  if (parts_->rest->reached()) return false;
  const bool waits_for_rest = parts_->driver->withheld() && !Computing();
  return parts_->driver->Busy() || sums_->pending() || step_closing_ ||
         (step_open_ && !step_running_) || waits_for_rest;
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
