// ThreadedExchange: runs the exchange of a rank on a thread of its own.  That thread owns the
// transport and everything that uses it (RankParts).  The trainer's thread posts events to it and
// waits for its answers.
//
// The thread polls while something is in flight or other ranks may write to this one.  It backs off
// while nothing moves, to one poll in 100 ms if no rank writes to it.  A post of the trainer wakes
// it; a message does not.  Its errors, among them StalledError (stall_watch.h), are thrown by the
// trainer's next call.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "framework/exchange/exchange.h"
#include "framework/exchange/rank_parts.h"
#include "framework/exchange/stall_watch.h"
#include "framework/exchange/summed_messages.h"

namespace dtrain {

class ThreadedExchange : public Exchange {
 public:
  // `transport` and what `spec` points to outlive the exchange; until then only its thread uses the
  // transport.  `on_thread` is the first function that runs on that thread.  `device`: the device
  // that the net computes on. The vectors are in its
  // memory where StaysOnDevice (rank_parts.h).
  ThreadedExchange(
      Transport& transport, const ExchangeSpec& spec, double stall_seconds,
      std::function<void()> on_thread = [] {}, const Device& device = {});
  ~ThreadedExchange() override;

  Turn Begin(int64_t samples) override;
  Arena gradients() override { return gradients_; }
  void Ready(Range range, const ReadyEvent& written = {}) override;
  void SumOverWorkers(std::span<double> values) override;
  StepOutcome End(const StepReport& report) override;
  void AtBoundary(const std::function<void(Transport&)>& work) override;
  void Collect(bool with_solver) override;
  Blob weights() override { return parts_->model.weights(); }
  const float* HostWeights() override { return parts_->model.HostWeights(); }
  std::span<float* const> solver_state() override { return parts_->model.solver_state(); }
  int64_t updates() override { return parts_->model.updates(); }
  std::optional<double> spread() override { return parts_->model.spread(); }
  Own SaveOwn() override;
  void Leave() override;
  void Abandon() override;
  Quiescence::Progress progress() const override;
  ExchangeStats stats() const override;
  const EventLog& record() const override { return parts_->log; }
  RankTimeline* timeline() override { return parts_->timeline.get(); }

 private:
  // Lists what the trainer waits for; it waits for one thing at a time.
  enum class Wanted { kNothing, kParts, kStepOrBoundary, kEndOfStep, kSum, kWorkDone };

  struct WrittenRange {
    Range range;
    ReadyEvent written;
  };
  struct LastRange {
    WrittenRange range;
    StepReport report;
  };
  // Holds what the trainer has posted since the thread took the last events.
  struct Events {
    bool quit = false;
    bool asked = false;            // the trainer waits for an answer
    std::optional<int64_t> begin;  // begin a step of so many samples
    std::vector<WrittenRange> ready;
    std::optional<LastRange> last;
    std::span<double> sum;  // values to be summed over the workers
    const std::function<void(Transport&)>* work = nullptr;

    bool any() const {
      return quit || asked || begin || !ready.empty() || last || !sum.empty() || work != nullptr;
    }
    // Removes all events but keeps the memory of `ready`.
    void Clear() {
      std::vector<WrittenRange> memory = std::move(ready);
      memory.clear();
      *this = Events();
      ready = std::move(memory);
    }
  };

  // --- called by the trainer's thread
  // Posts what `post` writes into the events, and waits for the answer.
  template <class Post>
  void Ask(Wanted wanted, const Post& post);
  void WaitForAnswer(std::unique_lock<std::mutex>& lock);
  void EndThread();

  // --- called by the exchange thread
  void PutTogether();
  void Run();
  bool Listens() const;
  bool Step();
  bool MoveDriver();
  bool TakeEvents();
  void Handle(const Events& events);
  bool PassOnReady();
  void UpdateOnDevice();
  void Sleep(Nanos time);
  void Publish();  // copies the state that the trainer reads, and answers it if possible
  bool Answered(Wanted wanted);
  void Answer(Wanted wanted);
  void FinishSends();
  bool Computing() const;
  bool Expects() const;
  void WatchForStall(bool moved);

  Transport& transport_;
  ExchangeSpec spec_;
  const Device device_;
  const Nanos stall_;
  const WallClock clock_;
  std::unique_ptr<BlobPools> pools_;
  std::unique_ptr<StepGraph> steps_;  // the updates; null if the vectors are in host memory
  // Owned by the exchange thread; the trainer may read it at a boundary.
  std::unique_ptr<RankParts> parts_;

  mutable std::mutex mutex_;  // guards the members from here to stats_
  std::condition_variable for_thread_;
  std::condition_variable for_trainer_;
  Events posted_;
  Wanted wanted_ = Wanted::kParts;
  std::exception_ptr error_;
  Turn turn_;  // the answer to kStepOrBoundary
  Arena gradients_;
  StepOutcome outcome_;  // the answer to kEndOfStep
  Quiescence::Progress progress_;
  ExchangeStats stats_;

  // It is used only by the trainer's thread.
  WrittenRange last_;  // the last range of the step's gradient, which End posts

  // The following are used only by the exchange thread.
  Events taken_;
  std::deque<WrittenRange> unwritten_;  // ranges that may not be written yet
  std::optional<LastRange> last_one_;   // comes behind those
  std::unique_ptr<SummedMessages> sums_;
  std::unique_ptr<StallWatch> stall_watch_;
  int64_t samples_ = 0;  // of the step that was begun last
  Nanos step_begin_ = 0;
  std::thread thread_;  // the last member, so that it starts when all others are constructed
};

}  // namespace dtrain
