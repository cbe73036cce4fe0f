// Driver: carries out what the actors of one rank ask for, and turns what comes of it into events.
//
// It stands on three seams - Mail (letters between ranks), Collective (sums over all workers) and
// Clock - and never knows whether they are real or simulated.  It owns the vectors of its actors
// and the solver's state beside their master weights.
//
// Effects on vectors and Sends wait in one queue and are carried out in order, in slices of 1 MB,
// so that whoever polls it can poll the network in between; events reach the actors meanwhile.  One
// thread calls a Driver (the exchange thread, the trainer's when there is one rank, the simulator).
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/clock.h"
#include "framework/core/layout.h"
#include "framework/exchange/event_log.h"
#include "framework/exchange/rank_timeline.h"
#include "framework/exchange/vectors.h"
#include "framework/solver/solver.h"
#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"

namespace dtrain {

struct DriverOptions {
  SolverConfig solver;
  double epochs = 1;  // of the whole run, for the schedule
  int64_t epoch_samples = 1;
  int64_t samples_applied = 0;  // at the start: > 0 after a resume
  int64_t updates = 0;          // that the weights have had then
  Placement placement;
  Rank rank = 0;
  bool ghost = false;  // sizes only: no arithmetic
  int threads = 1;     // of the team of the thread that drives, for solver updates
};

class Driver {
 public:
  // What the driver stands on.  Mail is null where no other rank has an actor to talk to, the
  // collective where there is one worker or the strategy uses none.
  struct Seams {
    Mail* mail = nullptr;
    Collective* collective = nullptr;
    const Clock* clock = nullptr;
    BlobPools* pools = nullptr;        // null in a ghost run
    RankTimeline* timeline = nullptr;  // null: not asked for
    EventLog* record = nullptr;        // notes every event; null: nobody wants to know
  };

  // `layout` and the seams outlive the driver.
  Driver(const ArenaLayout& layout, DriverOptions options, const Seams& seams);
  ~Driver();

  // Before the first step.  A rank has at most one worker.
  void AddActor(ActorId id, std::unique_ptr<Actor> actor);

  // Sets the model's weights in every vector that begins with them, and the solver's vectors by
  // name (absent ones are zero), from arenas of the whole layout.
  // Vectors of the whole model share the given version.
  void Restore(const Piece& weights, const std::map<std::string, std::vector<float>>& solver);

  // --- the step of this rank's worker
  bool HasWorker() const { return worker_ >= 0; }
  ActorId worker() const;
  void Begin();
  void Ready(Range range);
  // The last Ready of a step: all of its gradient is final.
  void ReadyLast(Range range, const StepReport& report);
  bool IsLast(Range range) const { return range.end == layout_.size(); }
  bool StepStarted() const { return started_; }
  bool StepEnded() const { return ended_; }
  const StepOutcome& outcome() const { return outcome_; }
  // What the worker computes with, and where the backward pass writes.
  Blob weights();
  float* gradients();

  // --- rest (rest.h).  While withheld, no step starts.
  void Withhold(bool withheld);
  bool withheld() const { return withheld_; }
  // Tells every actor of this rank (Actor::OnQuiet).
  void TellQuiet(const Quiet& quiet);
  // Fires a timer of this number now, whatever the time (replay); false when none is set.
  bool FireTimer(int timer);
  // While held, no timer fires.
  void HoldTimers(bool held) { timers_held_ = held; }
  // Letters between actors so far; a letter within the rank counts as both.
  int64_t letters_sent() const { return letters_sent_; }
  int64_t letters_received() const { return letters_received_; }
  // False once an update here, or one that a letter comes behind, has written a NaN or an infinity.
  bool finite() const { return finite_; }
  // Letters to the driver itself.
  void OnService(std::function<void(const Letter&)> handler) { service_ = std::move(handler); }
  void SendService(Rank to, Message message);

  // Moves everything along a little; true when something moved.
  bool Progress();
  // There is something to move along, now or when others have done their part.
  bool Busy() const;
  bool Idle() const { return operations_.empty() && local_.empty() && !MailBusy(); }
  // Bytes of vectors that effects have written so far, for who charges for it (the simulator).
  int64_t bytes_written() const { return bytes_written_; }
  bool HasOperation() const { return !operations_.empty(); }
  // When the next timer may fire; negative when none may.
  Nanos NextTimer() const { return timers_held_ || timers_.empty() ? -1 : timers_.begin()->first; }

  // --- the masters of this rank, at rest
  struct Master {
    ActorId actor;
    Range range;
    Blob weights;
    int64_t updates;                   // solver steps since the run began
    std::vector<float*> solver_state;  // in the solver's StateNames() order, of `range`
  };
  std::vector<Master> Masters();
  // Copies their weights to where they belong in an arena of the whole model.
  void CopyMasters(float* arena);
  int solver_vectors() const {
    return static_cast<int>(options_.solver.solver->StateNames().size());
  }

  Collective::Traffic traffic() const;
  ProtocolReport Report() const;
  std::string Describe() const;  // every actor of this rank, joined by "; "
  const Actor& actor(ActorId id) const;
  void Visit(StateVisitor& visitor);

 private:
  // The report of a step rides behind the last gradient in these extra elements of the arena.
  enum Tail { kSamples, kLoss, kStop, kTailSize };

  struct Hosted;
  struct Operation;
  class Port;

  struct Reduction {
    int64_t ticket;
    Range range;
  };

  Hosted& HostedBy(ActorId id) const;
  Hosted& WorkerHost() const;
  bool MailBusy() const { return mail_ != nullptr && mail_->Busy(); }

  bool DeliverLetter();
  void Deliver(const Letter& letter);
  bool ProgressReductions();
  bool FireDueTimer();
  using Timers = std::multimap<Nanos, std::pair<ActorId, int>>;
  void Fire(Timers::iterator timer);
  void Note(EventKind kind, ActorId actor, int64_t value = 0);

  bool RunSlice();
  void Run(Operation& operation);
  void Send(Operation& operation);
  void Take(Operation& operation);
  void Advance(Operation& operation, Range slice);
  void AddSlice(Operation& operation, Range slice);
  void ApplySlice(Operation& operation, Range slice);
  void BeginUpdate(Operation& operation);
  void EndUpdate(Operation& operation);
  void EndStep(const StepOutcome& outcome);
  void ClipAtWorker(const StepReport& report);
  StepOutcome ReadTail() const;

  const ArenaLayout& layout_;
  const DriverOptions options_;
  const LearningRate learning_rate_;
  Mail* const mail_;
  Collective* const collective_;
  const Clock* const clock_;
  BlobPools* const pools_;
  RankTimeline* const timeline_;
  EventLog* const record_;

  std::vector<std::unique_ptr<Hosted>> hosted_;
  int worker_ = -1;  // index into hosted_
  std::list<Operation> operations_;
  std::deque<Letter> local_;  // from actors of this rank to actors of this rank
  Timers timers_;
  std::deque<Reduction> reducing_;  // in the order they were started
  std::function<void(const Letter&)> service_;

  bool withheld_ = false;
  bool timers_held_ = false;
  bool start_pending_ = false;  // admitted while withheld
  bool waiting_ = false;        // begun, not started
  bool started_ = false;
  bool ended_ = true;
  bool finite_ = true;
  StepOutcome outcome_;
  int64_t letters_sent_ = 0;
  int64_t letters_received_ = 0;
  int64_t bytes_written_ = 0;
};

}  // namespace dtrain
