// ThreadedExchange: the exchange thread of a rank.  It owns the transport, the collective and the
// driver; the trainer's thread posts events to it and waits for its answers.
//
// The thread sleeps while nothing is in flight, polls while something is, and backs off while nothing
// moves.  When nothing has moved for `stall_seconds` (0: 20 times the longest step so far, at least
// 30 s) the run ends with StalledError (exit 7) saying what this rank waits for.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/strategies/driver.h"

namespace dtrain {

class ThreadedExchange : public Exchange {
 public:
  struct Parts {  // made on the exchange thread, which then owns them
    std::unique_ptr<Collective> collective;
    std::unique_ptr<Driver> driver;
  };

  // `transport` outlives the exchange and is touched by its thread only until then.
  ThreadedExchange(Transport& transport, std::function<Parts(Transport&)> make, double stall_seconds);
  ~ThreadedExchange() override;

  Blob Begin() override;
  float* gradients() override { return parts_.driver->gradients(); }
  void Ready(Range range) override;
  StepOutcome End(const StepReport& report) override;
  void AtRest(const std::function<void(Transport&)>& work) override;
  Blob weights() override { return parts_.driver->weights(); }
  std::span<float* const> solver_state() override { return parts_.driver->solver_state(); }
  double learning_rate() const override { return parts_.driver->learning_rate(); }
  ExchangeStats stats() const override;

 private:
  // What the trainer has posted since the last look.
  struct Events {
    bool begin = false;
    bool quit = false;
    bool last = false;                    // the last range is there, and so is the report
    StepReport report;
    const std::function<void(Transport&)>* work = nullptr;
    std::vector<Range> ready;
  };

  void Run();                             // the thread
  bool TakeEvents();                      // true when there were some
  bool AnyPosted() const;                 // with mutex_ held
  void Handle(const Events& events);
  void Publish();                         // tells the trainer what has changed
  void WatchForStall(bool moved);
  Nanos StallLimit() const;
  template <class Condition>
  void WaitFor(Condition condition);

  Transport& transport_;
  Nanos stall_;
  Parts parts_;                  // exchange thread's; the trainer may read it at rest

  mutable std::mutex mutex_;     // guards all below
  std::condition_variable for_thread_;
  std::condition_variable for_trainer_;
  Events posted_;
  bool made_ = false;
  bool started_ = false;
  bool ended_ = false;
  bool working_ = false;         // AtRest's work is not done
  std::exception_ptr error_;
  Collective::Traffic traffic_;
  Nanos exposed_ = 0;

  // The thread's own.
  Events taken_;
  Nanos last_move_ = 0;
  Nanos step_begin_ = 0;
  Nanos longest_step_ = 0;
  std::thread thread_;           // last: starts when all else is there
};

}  // namespace dtrain
