// Driver: carries out the effects that the actors of one rank ask for, and delivers the resulting
// events to them.
//
// It depends on MessageChannel (messages between ranks), Collective (all-reduces over the workers),
// Clock and VectorOps (arithmetic), and never knows whether they are real or simulated.  It owns
// the vectors of its actors and the solver's state that belongs to their master weights.
//
//   Mailbox            sends, receives and counts messages
//   Reducer            all-reduces over the workers, in order
//   GradientReduction  the all-reduce of a range of the gradient, one object a range
//   Service            messages between drivers
//   EffectQueue        effects that wait for their turn
//   TimerTable         timers that the actors have set
//
// All calls come from one thread: the exchange thread, the trainer's thread if there is only one
// rank, or the simulator's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/effect_queue.h"
#include "framework/exchange/event_log.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/gradient_reduction.h"
#include "framework/exchange/mailbox.h"
#include "framework/exchange/rank_timeline.h"
#include "framework/exchange/reducer.h"
#include "framework/exchange/service.h"
#include "framework/exchange/timer_table.h"

namespace dtrain {

// Lists the stages of the step of a rank's worker.
enum class StepStage {
  kNone,      // there is no step: before the first one, and between two
  kBegun,     // it waits to be admitted
  kAdmitted,  // it is admitted, but starts only when the run leaves the coming boundary
  kStarted,   // it may be computed; the host has not called TakeStarted yet
  kRunning,   // it is being computed
  kClosing,   // it is computed; updates and messages continue
  kEnded,     // it is over; the host has not called TakeEnded yet
};

// Supplies the values that Effects::Time returns in a replay: the times of the record, in order.
class EventTimes {
 public:
  virtual ~EventTimes() = default;
  virtual Nanos Next() = 0;
};

// Refers to the objects that a driver works with.  All of them outlive the driver.
struct DriverDependencies {
  MessageChannel* channel = nullptr;   // null if no other rank has an actor to talk to
  Collective* collective = nullptr;    // null with one worker, or if the strategy needs none
  SparseCollective* sparse = nullptr;  // for compressed gradients; else null
  // Adds the reports of steps, in host memory, where `collective` adds vectors in a device's; else null.
  Collective* reports = nullptr;
  const Clock* clock = nullptr;
  EventTimes* event_times = nullptr;  // null: times are read from the clock
  VectorOps* ops = nullptr;
  BlobPools* pools = nullptr;                  // null in a ghost run
  DeviceResidual* worker_residual = nullptr;   // null: the residual is one of the worker's vectors
  RankTimeline* timeline = nullptr;            // null if not requested
  AllReduceTimes* all_reduce_times = nullptr;  // null if not requested
  EventLog* record = nullptr;                  // gets every event; null if not requested
  int threads = 1;                             // threads that a solver update may use
};

class Driver {
 public:
  // Makes the actors that the placement puts on this rank (at most one worker).  `weights` are the
  // model's weights, shared by every vector that begins with them; without a blob in a ghost run.
  // `spec` outlives the driver.
  Driver(const ExchangeSpec& spec, Rank rank, const DriverDependencies& dependencies,
         const VectorSlice& weights);
  ~Driver();

  // --- the step of this rank's worker
  bool HasWorker() const { return worker_ != nullptr; }
  ActorId worker() const;
  // Begins a step.  Does nothing if a step that was begun before a boundary still waits or has
  // started since.  Does nothing either while the ranks agree on a boundary (TimerTable::held);
  // call it again after that boundary.
  void Begin();
  void Ready(Range range);
  // The last Ready of a step: its whole gradient is final.
  void ReadyLast(Range range, const StepReport& report);
  bool IsLast(Range range) const { return reducer_.IsLast(range); }
  StepStage stage() const { return stage_; }
  // True from the start of a step until the host has taken its end (TakeEnded).
  bool Stepping() const { return stage_ >= StepStage::kStarted; }
  // Each returns true once for each step.
  bool TakeStarted();
  bool TakeEnded();  // outcome() is then the step's
  const StepOutcome& outcome() const { return outcome_; }
  // Returns the number of samples applied so far.  With a synchronous strategy, those of all
  // workers, as far as this one knows; else those of this worker, added to the run's at the start.
  int64_t samples_applied() const;
  // weights(): what the worker computes with.  gradients(): the memory that receives the sums, null
  // in a ghost run.  The backward pass writes there as well, unless the worker's residual is in a
  // device's memory (DeviceResidual::gradient).
  Blob weights();
  float* gradients();

  // --- quiescence (quiescence.h)
  // While `held`, no step starts.
  void Hold(bool held);
  bool held() const { return held_; }
  // Notifies every actor of this rank (Actor::OnQuiescent).
  void NotifyQuiescent(const QuiescentState& quiescent);
  const Mailbox& mailbox() const { return mailbox_; }
  Service& service() { return service_; }
  TimerTable& timers() { return timers_; }
  // False once an update on this rank, or one reported by an incoming message (Envelope::finite),
  // has written a NaN or an infinity.
  bool finite() const { return finite_ && effects_.done().finite; }
  // Notes that this rank's step, or one before, has written one, before the host takes the step's end.
  void NoteNotFinite() { finite_ = outcome_.finite = false; }

  // --- death of a rank (only in the simulator; over MPI a lost rank ends the run)
  // Makes this rank die: its actors get no more events, and a step that is being computed is
  // dropped.  Effects requested so far are still carried out, so that a message to several
  // receivers reaches all of them; then dead() is true.  Quiescence keeps working, since the counts
  // of this rank are still needed.
  void Die();
  bool died() const { return died_; }
  bool dead() const { return died_ && effects_.empty() && stage_ == StepStage::kNone; }
  // Sends the last message of a dead rank, to the actor of its worker's node if the placement has
  // one.
  void TellNode();
  // Notes that a worker has died.
  void NoteGone(ActorId worker) { gone_.push_back(worker); }

  // Advances messages, all-reduces, timers and effects by one small step each.  Returns true if
  // anything moved.
  bool Progress();
  // True if there is work to do, now or after other ranks have done theirs.
  bool Busy() const;
  const EffectQueue& effects() const { return effects_; }
  // Fires a timer of this number now, whatever the time (replay).  Returns false if none is set.
  bool FireTimer(int number);

  // --- at a boundary
  struct Master {
    ActorId actor;
    Range range;
    Blob weights;
    int64_t updates;                   // solver steps since the run began
    double share;                      // Actor::MasterShare
    std::vector<float*> solver_state;  // elements of `range`, in the solver's StateNames() order
  };
  std::vector<Master> Masters();
  void Visit(StateVisitor& visitor);
  // Serves checkpoints.  Besides Visit, it visits the stage of the step (a step that has begun
  // continues with the next Begin), the timers that are set, and the actors' time, which continues
  // from its saved value.
  void VisitToGoOn(StateVisitor& visitor);
  // Returns what the actors hold for other actors of this run (Actor::Holds), joined by "; ".
  std::string Holds() const;

  Collective::Traffic traffic() const;
  ProtocolReport Report() const;        // of all actors of this rank
  ProtocolReport WorkerReport() const;  // of this rank's worker alone; empty without one
  const CompressionReport& compression() const { return effects_.done().compression; }
  std::string Describe() const;  // every actor of this rank, joined by "; "
  const Actor& actor(ActorId id) const;

 private:
  class Port;
  struct Host;

  Host& HostOf(ActorId id) const;

  void StartStep();
  void EndStep(HostedActor& host, const StepOutcome& outcome);
  void Send(HostedActor& host, SendEffect& effect, std::optional<VectorSlice> slice);
  void Reduce(HostedActor& host, VectorId vector, Range range);
  GradientReduction& ReductionOf(Range range);
  void RunReduction(GradientReduction& reduction);
  void StartSum(HostedActor& host, VectorId vector, Range range);

  // True if the vectors are in a device's memory.
  bool OnDevice() const {
    return dependencies_.pools != nullptr && dependencies_.pools->device().queue != nullptr;
  }
  // Returns the memory of the step's report.
  float* Tail() { return reducer_.TailOf(gradients()); }
  bool DeliverEnvelope();
  bool TakeReduced();
  void TellReduced(Range range);
  bool FireDueTimer();
  void Fire(const TimerTable::Timer& timer);
  void Note(const Event& event);
  Nanos EventTime(ActorId actor);

  const ExchangeSpec& spec_;
  const Rank rank_;
  const DriverDependencies dependencies_;

  std::vector<std::unique_ptr<Host>> hosts_;
  Host* worker_ = nullptr;  // of hosts_
  Mailbox mailbox_;
  Service service_;
  float host_tail_[Reducer::kTailSize] = {};  // used where the vectors are in a device's memory
  Reducer reducer_;
  TimerTable timers_;
  EffectQueue effects_;
  std::map<int64_t, GradientReduction> reductions_;  // by the first element of their ranges
  std::deque<GradientReduction*> rounds_;            // ReductionParts::rounds

  StepStage stage_ = StepStage::kNone;
  bool held_ = false;
  bool finite_ = true;    // no incoming message has reported a NaN or infinity
  StepOutcome outcome_;   // of the last step
  int64_t boundary_ = 0;  // samples of the next boundary, once a step has asked
  bool died_ = false;
  std::vector<ActorId> gone_;  // workers known to have died
  Nanos time_ahead_ = 0;       // actors' time minus clock time; not 0 after a resume
};

}  // namespace dtrain
