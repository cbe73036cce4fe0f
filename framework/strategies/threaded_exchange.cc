#include "framework/strategies/threaded_exchange.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace dtrain {
namespace {

constexpr Nanos kAskFor = 3'000'000'000;  // how long a stalled rank waits for answers
constexpr char kComputing[] = " (computing)";
constexpr int kPatience = 10;             // stall limits that a computing rank may take
constexpr Nanos kIdleLook = 100'000'000;  // how often an idle rank looks for questions

// "What do your actors wait for?"
struct Ask {
  static constexpr int kKind = 201;
  template <class F>
  void Fields(F&&) {}
};

struct State {
  static constexpr int kKind = 202;
  int64_t computing = 0;
  std::vector<int64_t> text;  // a word a character: stall reports are rare and short
  template <class F>
  void Fields(F&& field) {
    field(computing), field(text);
  }
};

// One worker's values of a sum over the workers, to worker 0; and the sum, back.
struct PartOfSum {
  static constexpr int kKind = 203;
  std::vector<int64_t> values;  // the bits of doubles
  template <class F>
  void Fields(F&& field) {
    field(values);
  }
};

struct SumOfAll {
  static constexpr int kKind = 204;
  std::vector<int64_t> values;
  template <class F>
  void Fields(F&& field) {
    field(values);
  }
};

std::vector<int64_t> BitsOf(std::span<const double> values) {
  std::vector<int64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<int64_t>(value));
  return bits;
}

}  // namespace

ThreadedExchange::ThreadedExchange(Transport& transport, const RankSetup& setup,
                                   double stall_seconds, std::function<void()> on_thread)
    : transport_(transport),
      placement_(setup.actors.placement),
      whole_{0, setup.layout->size()},
      stall_(FromSeconds(stall_seconds)) {
  thread_ = std::thread([this, &setup, on_thread = std::move(on_thread)] {
    try {
      on_thread();
      parts_ = std::make_unique<RankParts>(setup, transport_);
      parts_->driver->OnService([this](const Letter& letter) { OnService(letter); });
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

// ------------------------------------------------------------------ the trainer's thread

// Waits until `condition` holds, or throws what ended the exchange thread.
template <class Condition>
void ThreadedExchange::WaitFor(Condition condition) {
  std::unique_lock lock(mutex_);
  for_trainer_.wait(lock, [&] { return error_ != nullptr || condition(); });
  if (error_ != nullptr) std::rethrow_exception(error_);
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

// ------------------------------------------------------------------ the exchange thread

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
    } else if (parts_->driver->Busy() || Listens() || !summed_.empty()) {
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
    longest_step_ = std::max(longest_step_, WallNow() - step_begin_);
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
  if (!events.sum.empty()) BeginSum(events.sum);
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

// ------------------------------------------------------------------ sums over the workers

// Worker 0 adds, in rank order, and tells the others.
void ThreadedExchange::BeginSum(std::span<double> values) {
  summed_ = values;
  const std::vector<int64_t> mine = BitsOf(values);
  if (transport_.rank() == 0) return TakePart(0, mine);
  parts_->driver->SendService(0, Pack(PartOfSum{mine}));
}

// A worker's next part comes when it has the sum of this one.
void ThreadedExchange::TakePart(Rank from, std::span<const int64_t> part) {
  DT_CHECK(!parts_of_sum_.contains(from)) << "rank " << from << " takes part in a sum twice";
  parts_of_sum_[from].assign(part.begin(), part.end());
  if (static_cast<int>(parts_of_sum_.size()) < placement_.workers) return;
  std::vector<double> sum(part.size());
  for (const auto& [rank, values] : parts_of_sum_) {
    DT_CHECK(values.size() == sum.size())
        << "rank " << rank << " sums " << values.size() << " values, others " << sum.size();
    for (size_t i = 0; i < sum.size(); ++i) {
      const double value = std::bit_cast<double>(values[i]);
      sum[i] = rank == 0 ? value : sum[i] + value;
    }
  }
  parts_of_sum_.clear();
  const std::vector<int64_t> bits = BitsOf(sum);
  for (int worker = 1; worker < placement_.workers; ++worker) {
    parts_->driver->SendService(worker, Pack(SumOfAll{bits}));
  }
  EndSum(bits);
}

void ThreadedExchange::EndSum(std::span<const int64_t> sum) {
  DT_CHECK(sum.size() == summed_.size()) << sum.size() << " sums for " << summed_.size();
  for (size_t i = 0; i < sum.size(); ++i) summed_[i] = std::bit_cast<double>(sum[i]);
  summed_ = {};
  const std::lock_guard lock(mutex_);
  summing_ = false;
  for_trainer_.notify_one();
}

// ------------------------------------------------------------------ stalls

void ThreadedExchange::OnService(const Letter& letter) {
  if (letter.message.kind == Ask::kKind) {
    const std::string text = parts_->driver->Describe();
    parts_->driver->SendService(letter.from_rank,
                                Pack(State{Computing(), {text.begin(), text.end()}}));
  } else if (letter.message.kind == State::kKind) {
    const auto state = Unpack<State>(letter.message);
    states_[letter.from_rank] = std::string(state.text.begin(), state.text.end());
    if (state.computing != 0) states_[letter.from_rank] += kComputing;
  } else if (letter.message.kind == PartOfSum::kKind) {
    TakePart(letter.from_rank, letter.message.words);
  } else if (letter.message.kind == SumOfAll::kKind) {
    EndSum(letter.message.words);
  } else {
    parts_->rest->OnMessage(letter.message);
  }
}

Nanos ThreadedExchange::StallLimit() const {
  return stall_ > 0 ? stall_ : std::max<Nanos>(FromSeconds(30), 20 * longest_step_);
}

bool ThreadedExchange::Computing() const { return step_running_ && !step_closing_ && summed_.empty(); }

// This rank needs something from others: an admission, a sum, an answer, the others' rest.
bool ThreadedExchange::Expects() const {
  if (parts_->rest->reached()) return false;
  const bool waits_for_rest = parts_->driver->withheld() && !Computing();
  return parts_->driver->Busy() || !summed_.empty() || step_closing_ || (step_open_ && !step_running_) ||
         waits_for_rest;
}

// A rank that computes is not a stall, unless it takes ten times as long as one would be.
void ThreadedExchange::WatchForStall(bool moved) {
  const Nanos now = WallNow();
  if (moved || !Expects() || last_move_ == 0) {
    last_move_ = now;
    asked_times_ = 0;
    return;
  }
  if (now - last_move_ <= (asked_times_ + 1) * StallLimit()) return;
  const int64_t letters = parts_->driver->letters_received();
  AskAll();
  if (parts_->driver->letters_received() != letters) {
    last_move_ = WallNow();
    return;
  }
  const bool all_answer = static_cast<int>(states_.size()) == transport_.size();
  const bool computes = std::any_of(states_.begin(), states_.end(), [](const auto& state) {
    return state.second.ends_with(kComputing);
  });
  if (all_answer && computes && ++asked_times_ < kPatience) {
    log::Warning("rank {} has waited for {:.0f} s{}", transport_.rank(),
                 ToSeconds(now - last_move_), StatesOfAll());
    return;
  }
  throw StalledError(
      fmt::format("rank {} of {}: nothing has moved for {:.0f} s{}", transport_.rank(),
                  transport_.size(), ToSeconds(now - last_move_), StatesOfAll()),
      "a rank that does not answer is gone or hangs; stall_seconds sets the limit");
}

void ThreadedExchange::AskAll() {
  states_.clear();
  states_[transport_.rank()] = parts_->driver->Describe();
  for (Rank rank = 0; rank < transport_.size(); ++rank) {
    if (rank != transport_.rank()) parts_->driver->SendService(rank, Pack(Ask{}));
  }
  Backoff backoff;
  const Nanos until = WallNow() + kAskFor;
  while (static_cast<int>(states_.size()) < transport_.size() && WallNow() < until) {
    if (Step()) {
      Publish();
    } else {
      backoff.Pause();
    }
  }
}

std::string ThreadedExchange::StatesOfAll() const {
  std::string lines;
  for (Rank rank = 0; rank < transport_.size(); ++rank) {
    const auto it = states_.find(rank);
    const std::string state =
        it != states_.end() ? it->second : placement_.RoleOf(rank) + ", no answer";
    lines += fmt::format("\n  rank {}: {}", rank, state);
  }
  return lines;
}

}  // namespace dtrain
