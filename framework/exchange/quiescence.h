// Quiescence: one mechanism by which a run pauses (evaluation, checkpoint, stop, end), unknown to
// protocols.  At a boundary no step is running and no message is on its way; accumulators keep their
// content.
//
// Where all workers end the same steps on equal knowledge (synchronous, no servers) each rank
// decides alone: behind the step that reaches the boundary, asks for a stop or is not finite.
// Otherwise one rank, the leader (server 0's), decides:
//
//   worker -> leader  Started    a step starts; how the step before ended   (asynchronous only)
//   leader -> workers Hold   start no more                              (asynchronous only)
//   worker -> leader  Held   none is running any more
//   leader -> ranks   Count      how many messages have your actors sent and received?
//   rank -> leader    Counted    asked again until two rounds agree that all have arrived (Mattern,
//                                "Algorithms for distributed termination detection", 1987: four
//                                counters)
//   leader -> ranks   AllQuiescent   tell your actors (Actor::OnQuiescent); counted until quiescent again
//   leader -> ranks   AtBoundary     here we are, at so many samples
//   leader -> rank 0  TellRoot   what all workers have computed since the last one
//
// Where ranks die (the simulator), what has died goes on to answer here: of its worker's last step it
// tells the truth, and messages to its actors count as received.
//
// An asynchronous run pauses when the steps *started* reach the boundary; those that start while
// word of it travels are applied as well.
#pragma once

#include "framework/exchange/driver.h"

namespace dtrain {

// The same on every rank.
struct BoundaryState {
  int64_t samples_applied = 0;
  bool stop = false;   // some rank was asked to stop
  bool finite = true;  // no NaN or infinity so far
};

class Quiescence {
 public:
  // Both outlive it.
  Quiescence(Driver& driver, const ExchangeSpec& spec, Rank rank);
  Quiescence(const Quiescence&) = delete;

  // --- this rank's worker
  void StepStarts(int64_t samples);
  void StepEnded();
  // The rank is dead: says so, and that its worker's step will not end any more.
  void Died();

  bool reached() const { return reached_; }
  const BoundaryState& state() const { return state_; }
  void Leave();

  // Progress of all workers so far.  The leader reports it to rank 0 after each global batch, and at a boundary.
  struct Told {
    int64_t samples_applied = 0;
    int64_t samples = 0;
    double loss_sum = 0;
  };
  const Told& told() const { return told_; }
  // For a run that goes on as if it had never stopped.
  void VisitTold(StateVisitor& visitor);

 private:
  // The state of the leader.
  struct Leader {
    int64_t next = 0;     // boundary
    int64_t started = 0;  // samples
    int64_t ended = 0;
    bool stop = false;
    bool finite = true;
    bool holding = false;
    int held = 0;       // workers
    int64_t round = 0;  // of counting
    int counted = 0;    // ranks
    bool idle = true;
    int64_t sent = 0, received = 0, sent_before = -1;
    bool told_quiescent = false;
    Told told;
  };

  bool local() const { return spec_.synchronous() && spec_.placement().servers == 0; }
  void Withdraw();  // this rank's worker stops
  void SayHeld();
  void Reach(const BoundaryState& state);
  void AnswerCount(const control::Count& count);

  void HandleMessages();
  void KeepStarted(const control::Started& started);
  void KeepEnded(const control::EndedStep& step);
  void KeepHeld(const control::Held& held);
  void KeepCounted(const control::Counted& counted);
  void TellRootOfSteps();
  void HoldIfDue();
  void StartCount();
  void Settle();
  template <class M>
  void TellAllRanks(const M& envelope);

  Driver& driver_;
  const ExchangeSpec& spec_;
  const Rank leader_rank_;

  BoundaryState state_;
  bool reached_ = false;
  bool said_held_ = false;    // since the last boundary
  control::EndedStep ended_;  // not yet told to the leader
  int64_t next_;              // synchronous: boundary
  Leader leader_;
  Told told_;
};

}  // namespace dtrain
