// Rest: one mechanism by which a run pauses (evaluation, checkpoint, stop, end), unknown to
// protocols. At rest no step is running and no letter is on its way; accumulators keep their
// content.
//
// Where all workers end the same steps on equal knowledge (synchronous, no servers) each rank
// decides alone: behind the step that reaches the boundary, asks for a stop or is not finite.
// Otherwise one rank, the keeper (server 0's), decides:
//
//   worker -> keeper  Started    a step starts; how the step before ended   (asynchronous only)
//   keeper -> workers Withhold   start no more                              (asynchronous only)
//   worker -> keeper  Withheld   none is running any more
//   keeper -> ranks   Count      how many letters have your actors sent and received?
//   rank -> keeper    Counted    asked again until two rounds agree that all have arrived (Mattern,
//                                "Algorithms for distributed termination detection", 1987: four
//                                counters)
//   keeper -> ranks   AllQuiet   tell your actors (Actor::OnQuiet); counted until quiet again
//   keeper -> ranks   AtRest     here we are, at so many samples
//
// An asynchronous run pauses when the steps *started* reach the boundary; those that start while
// word of it travels are applied as well.
#pragma once

#include <vector>

#include "framework/exchange/driver.h"
#include "framework/exchange/rest_rule.h"

namespace dtrain {

// The same on every rank.
struct RestState {
  int64_t samples_applied = 0;
  bool stop = false;   // some rank was asked to stop
  bool finite = true;  // no NaN or infinity so far
};

class Rest {
 public:
  struct Options {
    RestRule rule;
    bool synchronous = true;
    Placement placement;
    Rank rank = 0;
    int64_t samples_applied = 0;  // at the start
  };

  // The driver outlives it.
  Rest(Driver& driver, const Options& options);

  // --- this rank's worker
  void StepStarts(int64_t samples);
  void StepEnded(const StepOutcome& outcome);

  // One of rest's own messages.
  void OnMessage(const Message& message);

  bool reached() const { return reached_; }
  const RestState& state() const { return state_; }
  void Leave();

  // What all workers have said of their steps so far (the keeper tells rank 0, a global batch at a
  // time, and at rest what there is).
  struct Told {
    int64_t samples_applied = 0;
    int64_t samples = 0;
    double loss_sum = 0;
  };
  const Told& told() const { return told_; }

 private:
  struct Keeper {
    int64_t next = 0;     // boundary
    int64_t started = 0;  // samples
    int64_t ended = 0;
    bool stop = false;
    bool finite = true;
    bool withholding = false;
    int withheld = 0;   // workers
    int64_t round = 0;  // of counting
    int counted = 0;    // ranks
    bool idle = true;
    int64_t sent = 0, received = 0, sent_before = -1;
    bool told_quiet = false;
    Told told;
  };

  bool local() const { return options_.synchronous && options_.placement.servers == 0; }
  bool IsKeeper() const { return options_.rank == keeper_rank_; }
  void Withdraw();  // this rank's worker stops
  void SayWithheld();
  void Reach(const RestState& state);

  void KeepStarted(const Message& message);
  void KeepEnded(int64_t samples, double loss_sum, bool stop, bool finite);
  void TellRoot();
  void KeepWithheld(const Message& message);
  void WithholdIfDue();
  void StartCount();
  void Settle();
  void KeepCounted(const Message& message);
  void AnswerCount(const Message& message);

  Driver& driver_;
  const Options options_;
  const Rank keeper_rank_;

  RestState state_;
  bool reached_ = false;
  bool running_ = false;  // a step of this rank's worker
  bool said_withheld_ = false;
  StepOutcome ended_;    // not yet told to the keeper
  int64_t samples_ = 0;  // synchronous: applied by all
  int64_t next_ = 0;     // synchronous: boundary
  Keeper keeper_;
  Told told_;
};

}  // namespace dtrain
