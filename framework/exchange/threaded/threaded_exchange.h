// ThreadedExchange: the exchange thread of a rank.  It owns the transport and everything that
// speaks over it (RankParts); the trainer's thread posts events to it and waits for its answers.
//
// The thread polls while something is in flight or others may write to this rank, and backs off
// while nothing moves; a post of the trainer wakes it.  Its errors, StalledError among them
// (stall_watch.h), are thrown to the trainer by whatever it calls next.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/exchange/exchange.h"
#include "framework/exchange/rank_parts.h"
#include "framework/exchange/stall_watch.h"
#include "framework/exchange/sum_letters.h"

namespace dtrain {

class ThreadedExchange : public Exchange {
 public:
  // `transport` outlives the exchange and is touched by its thread only until then.  `on_thread`
  // runs first on that thread.
  ThreadedExchange(
      Transport& transport, const RankSetup& setup, double stall_seconds,
      std::function<void()> on_thread = [] {});
  ~ThreadedExchange() override;

  Turn Begin(int64_t samples) override;
  float* gradients() override { return gradients_; }
  void Ready(Range range) override;
  void SumOverWorkers(std::span<double> values) override;
  StepOutcome End(const StepReport& report) override;
  void AtRest(const std::function<void(Transport&)>& work) override;
  void Collect(bool with_solver) override;
  Blob weights() override { return parts_->model->weights(); }
  std::span<float* const> solver_state() override { return parts_->model->solver_state(); }
  int64_t updates() override { return parts_->model->updates(); }
  void Leave() override;
  Rest::Told told() const override;
  ExchangeStats stats() const override;
  const EventLog& record() const override { return parts_->log; }
  RankTimeline* timeline() override { return parts_->timeline.get(); }

 private:
  // What the trainer has posted since the last look.
  struct Events {
    bool begin = false;
    bool quit = false;
    bool last = false;  // the last range is there, and so is the report
    int64_t samples = 0;
    StepReport report;
    const std::function<void(Transport&)>* work = nullptr;
    std::span<double> sum;  // to be summed over the workers
    std::vector<Range> ready;
  };

  template <class Condition>
  void WaitFor(Condition condition);

  // The thread's: threaded_exchange_loop.cc.
  void PutTogether(const RankSetup& setup);
  void Run();
  bool Listens() const;
  bool Step();
  bool MoveDriver();
  bool TakeEvents();
  bool AnyPosted() const;  // with mutex_ held
  void Handle(const Events& events);
  void Wait(Nanos sleep);
  void Publish();  // tells the trainer what has changed
  void FinishSends();

  void SumCame();
  bool Computing() const;
  bool Expects() const;
  void WatchForStall(bool moved);

  Transport& transport_;
  const Placement placement_;
  const Range whole_;
  const Nanos stall_;
  std::unique_ptr<RankParts> parts_;  // exchange thread's; the trainer may read it at rest

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable for_thread_;
  std::condition_variable for_trainer_;
  Events posted_;
  bool made_ = false;
  bool started_ = false;
  bool ended_ = false;
  bool reached_ = false;  // rest
  bool working_ = false;  // AtRest's work is not done
  bool summing_ = false;  // SumOverWorkers is not done
  std::exception_ptr error_;
  Blob weights_;  // of the step that has started; the trainer takes it
  float* gradients_ = nullptr;
  StepOutcome outcome_;
  Rest::Told told_;
  ExchangeStats stats_;

  // The thread's own.
  Events taken_;
  std::unique_ptr<SumLetters> sums_;
  std::unique_ptr<StallWatch> stall_watch_;
  int64_t samples_ = 0;        // of the step that is begun
  bool step_open_ = false;     // begun, not ended
  bool step_running_ = false;  // started, not ended
  bool step_closing_ = false;  // the trainer is done with it
  Nanos step_begin_ = 0;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace dtrain
