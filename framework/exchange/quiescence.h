// Quiescence: pauses a run at a boundary (evaluation, checkpoint, stop, end), for any protocol.  At
// a boundary no step is running and no message is in flight; accumulators keep their content.
//
// All workers of a strategy with collectives end the same steps and, where they have exchanged it
// (StepOutcome::alone), with the same outcome.  So each rank decides alone: after the step that
// reaches the boundary, asks for a stop or is not finite.  Otherwise one rank, the leader (the rank
// of server 0), decides:
//
//   worker -> leader   Started       a step starts; outcome of the step before  (asynchronous only)
//   leader -> workers  Hold          start no more steps                        (asynchronous only)
//   worker -> leader   Held          this worker runs no step
//   leader -> ranks    Count         report how many messages your actors have sent and received
//   rank   -> leader   Counted       the counts; asked for until two rounds agree that all messages
//                                    have arrived (Mattern, "Algorithms for distributed termination
//                                    detection", 1987: four counters)
//   leader -> ranks    AllQuiescent  notify your actors (Actor::OnQuiescent); then counted again
//   leader -> ranks    AtBoundary    the boundary is reached, at so many samples
//   leader -> rank 0   ReportToRoot  what all workers have computed since the last report
//
// A dead rank (only in the simulator) keeps answering these messages: it reports the outcome of its
// worker's last step and counts messages to its actors as received.
//
// An asynchronous run pauses when the samples of the steps *started* reach the boundary.  Steps
// that start before Hold arrives are applied as well.
#pragma once

#include "framework/exchange/driver.h"

namespace dtrain {

// Holds the state of the run at a boundary, which is the same on every rank.
struct BoundaryState {
  int64_t samples_applied = 0;
  bool stop = false;   // some rank was asked to stop
  bool finite = true;  // no NaN or infinity so far
};

class Quiescence {
 public:
  // `driver` and `spec` outlive it.
  Quiescence(Driver& driver, const ExchangeSpec& spec, Rank rank);
  Quiescence(const Quiescence&) = delete;

  // --- this rank's worker
  void StepStarts(int64_t samples);
  void StepEnded();
  // True if the step that is about to end is the last one before a boundary, or may be.
  bool IsDue() const { return !spec_.traits().lockstep || driver_.samples_applied() >= next_; }
  // Call it when the rank is dead.  It reports the death, and that the worker's step will not end.
  void Died();

  bool reached() const { return reached_; }
  const BoundaryState& state() const { return state_; }
  void Leave();

  // Holds the progress of all workers so far.  The leader reports it to rank 0 after each global batch, and at a
  // boundary.
  struct Progress {
    int64_t samples_applied = 0;
    int64_t samples = 0;
    double loss_sum = 0;
  };
  const Progress& progress() const { return progress_; }
  // Saves and loads the progress, for a run that continues as if it had never stopped.
  void VisitProgress(StateVisitor& visitor);

 private:
  // Holds the state of the leader.
  struct Leader {
    int64_t next = 0;     // next boundary, in samples
    int64_t started = 0;  // samples of the steps started
    int64_t ended = 0;    // samples of the steps ended
    bool stop = false;
    bool finite = true;
    bool holding = false;  // Hold was sent
    int held = 0;          // workers that sent Held
    int64_t round = 0;     // number of the round of counting
    int counted = 0;       // ranks that answered in this round
    bool idle = true;      // no rank had effects to carry out in this round
    int64_t sent = 0, received = 0, sent_before = -1;
    bool notified = false;  // AllQuiescent was sent
    Progress progress;
  };

  bool local() const { return spec_.traits().collectives; }
  void Withdraw();  // starts no more steps of this rank's worker
  void SendHeld();
  void Reach(const BoundaryState& state);
  void AnswerCount(const control::Count& count);

  void HandleMessages();
  void KeepStarted(const control::Started& started);
  void KeepEnded(const control::EndedStep& step);
  void KeepHeld(const control::Held& held);
  void KeepCounted(const control::Counted& counted);
  void ReportStepsToRoot();
  void HoldIfDue();
  void StartCount();
  void Settle();
  template <class M>
  void SendToAllRanks(const M& envelope);

  Driver& driver_;
  const ExchangeSpec& spec_;
  const Rank leader_rank_;

  BoundaryState state_;
  bool reached_ = false;
  bool said_held_ = false;    // Held was sent since the last boundary
  control::EndedStep ended_;  // outcome of the last step, not yet reported to the leader
  int64_t next_;              // next boundary of a synchronous run, in samples
  Leader leader_;
  Progress progress_;
};

}  // namespace dtrain
