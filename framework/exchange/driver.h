// Driver: carries out what the actors of one rank ask for, and turns what comes of it into events.
//
// It depends on MessageChannel (messages between ranks), Collective (sums over all workers), Clock and
// VectorOps (arithmetic), and never knows whether they are real or simulated.  It owns the vectors
// of its actors and the solver's state beside their master weights.
//
//   Mailbox         messages, and how many there were
//   Reducer      sums over the workers, in order
//   Service      messages from driver to driver
//   EffectQueue  effects that wait their turn
//   TimerTable   when actors want to be woken
//
// One thread calls a Driver (the exchange thread, the trainer's when there is one rank, the
// simulator).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/effect_queue.h"
#include "framework/exchange/event_log.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/mailbox.h"
#include "framework/exchange/rank_timeline.h"
#include "framework/exchange/reducer.h"
#include "framework/exchange/service.h"
#include "framework/exchange/timer_table.h"

namespace dtrain {

// Where the step of a rank's worker stands.
enum class StepStage {
  kNone,      // there is none: before the first, and between two
  kBegun,     // it waits to be admitted
  kAdmitted,  // but the run comes to a boundary: it starts when that is left
  kStarted,   // it may be computed, and nobody has looked yet (TakeStarted)
  kRunning,   // it is being computed
  kClosing,   // it is computed; updates and messages go on
  kEnded,     // it is over, and nobody has looked yet (TakeEnded)
};

// What Effects::Time answers in a replay: the times of the record, in order.
class EventTimes {
 public:
  virtual ~EventTimes() = default;
  virtual Nanos Next() = 0;
};

// What a driver stands on; all of it outlives the driver.
struct DriverSeams {
  MessageChannel* channel = nullptr;   // null where no other rank has an actor to talk to
  Collective* collective = nullptr;    // null with one worker, or where the strategy uses none
  SparseCollective* sparse = nullptr;  // the same, where its sums are compressed
  const Clock* clock = nullptr;
  EventTimes* event_times = nullptr;  // null: the clock's
  VectorOps* ops = nullptr;
  BlobPools* pools = nullptr;                 // null in a ghost run
  DeviceResidual* worker_residual = nullptr;  // null: it is among the worker's vectors
  RankTimeline* timeline = nullptr;           // null: not asked for
  SumTimes* sum_times = nullptr;              // the same
  EventLog* record = nullptr;                 // notes every event; null: nobody wants to know
  int threads = 1;  // of the team of the thread that drives, for solver updates
};

class Driver : private EffectTarget {
 public:
  // With the actors that the placement puts on this rank (at most one worker).  `weights`: the
  // model's, which every vector that begins with them shares; no blob in a ghost run.  `spec`
  // outlives the driver.
  Driver(const ExchangeSpec& spec, Rank rank, const DriverSeams& seams, const Piece& weights);
  ~Driver() override;

  // --- the step of this rank's worker
  bool HasWorker() const { return worker_ != nullptr; }
  ActorId worker() const;
  // Does nothing where a step was begun before a boundary: it waits still, or has started since.  Nor
  // where a boundary is so near that nothing may begin (TimerTable::Hold): call it again behind the boundary.
  void Begin();
  void Ready(Range range);
  // The last Ready of a step: all of its gradient is final.
  void ReadyLast(Range range, const StepReport& report);
  bool IsLast(Range range) const { return reducer_.IsLast(range); }
  StepStage stage() const { return stage_; }
  // It may be computed, is computed, or has ended unseen.
  bool Stepping() const { return stage_ >= StepStage::kStarted; }
  // True once for each step.
  bool TakeStarted();
  bool TakeEnded();  // outcome() is its end
  const StepOutcome& outcome() const { return outcome_; }
  // Synchronous: by all workers, as this one knows.  Else by this one, from where the run began.
  int64_t samples_applied() const;
  // What the worker computes with, and where sums come to (null in a ghost run): where the backward pass
  // writes as well, unless the worker's residual is in a device's memory.
  Blob weights();
  float* gradients();

  // --- quiescence (quiescence.h)
  // While held, no step starts.
  void Hold(bool held);
  bool held() const { return held_; }
  // Tells every actor of this rank (Actor::OnQuiescent).
  void TellQuiescent(const QuiescentState& quiescent);
  const Mailbox& mailbox() const { return mailbox_; }
  Service& service() { return service_; }
  TimerTable& timers() { return timers_; }
  // False once an update here, or one that a message comes behind, has written a NaN or an infinity.
  bool finite() const { return finite_ && effects_.finite(); }

  // --- death (the simulator's; over MPI a lost rank ends the run)
  // This rank dies: its actors see no event any more, and a step that is computed comes to nothing.
  // Effects that they have asked for by now are carried out, so that no message goes out to some of its receivers
  // only; then it is dead.  Quiescence goes on, since some rank has to answer in its place.
  void Die();
  bool died() const { return died_; }
  bool dead() const { return died_ && effects_.empty() && stage_ == StepStage::kNone; }
  // The last message of a rank that is dead, to the actor of its worker's node, if there is one.
  void TellNode();
  // A worker has died.
  void NoteGone(ActorId worker) { gone_.push_back(worker); }

  // Moves everything along a little; true when something moved.
  bool Progress();
  // There is something to move along, now or when others have done their part.
  bool Busy() const;
  const EffectQueue& effects() const { return effects_; }
  // Fires a timer of this number now, whatever the time (replay); false when none is set.
  bool FireTimer(int number);

  // --- at a boundary
  // The spec has them already (ExchangeSpec::actors).
  void SetBuckets(const std::vector<Range>& buckets);
  struct Master {
    ActorId actor;
    Range range;
    Blob weights;
    int64_t updates;                   // solver steps since the run began
    double share;                      // Actor::MasterShare
    std::vector<float*> solver_state;  // in the solver's StateNames() order, of `range`
  };
  std::vector<Master> Masters();
  // Puts their weights where they belong in an arena of the whole model: a shard is copied, a
  // replica is added by its share.
  void PutMasters(float* arena);
  void Visit(StateVisitor& visitor);
  // For checkpoints: also whether a step has begun, which then goes on with the next Begin, the timers
  // that are set, and the time that actors measure by, which goes on where it was.
  void VisitToGoOn(StateVisitor& visitor);
  // What its actors hold for others of this run (Actor::Holds), joined by "; ".
  std::string Holds() const;

  Collective::Traffic traffic() const;
  ProtocolReport Report() const;
  ProtocolReport WorkerReport() const;  // of its worker alone; empty without one
  const CompressionReport& compression() const { return effects_.compression(); }
  std::string Describe() const;  // every actor of this rank, joined by "; "
  const Actor& actor(ActorId id) const;

 private:
  class Port;
  struct Host;

  void Restore(HostedActor& host, const Piece& weights) const;
  Host& HostOf(ActorId id) const;

  void StartStep() override;
  void EndStep(HostedActor& host, const StepOutcome& outcome) override;
  void Send(HostedActor& host, SendEffect& effect, std::optional<Piece> piece) override;
  void StartSum(HostedActor& host, Range range, Piece selected, int64_t k) override;
  void StartDenseSum(Range range) override {
    if (spec_.actors.compress.on()) TellNotFinite(range);
    reducer_.Start(range, gradients());
  }
  void StartRoundedSum(HostedActor& host, Range range) override;
  void TellNotFinite(Range range);
  void EndSum(const Reduced& reduced) override;

  // The vectors are in a device's memory: its pools make them there.
  bool OnDevice() const {
    return seams_.pools != nullptr && seams_.pools->device().queue != nullptr;
  }
  bool DeliverEnvelope();
  double DensityNow() const;
  bool HoldsBack() const;
  bool TakeReduced();
  void TellReduced(Range range);
  bool FireDueTimer();
  void Fire(const TimerTable::Timer& timer);
  void Note(const Event& event);
  Nanos EventTime(ActorId actor);
  void StudyGradient(Range range);

  const ExchangeSpec& spec_;
  const Rank rank_;
  const DriverSeams seams_;

  std::vector<std::unique_ptr<Host>> hosts_;
  Host* worker_ = nullptr;  // of hosts_
  Mailbox mailbox_;
  Service service_;
  Reducer reducer_;
  TimerTable timers_;
  EffectQueue effects_;

  StepStage stage_ = StepStage::kNone;
  bool held_ = false;
  bool finite_ = true;   // as far as messages say
  StepOutcome outcome_;  // of the last step
  bool died_ = false;
  std::vector<ActorId> gone_;  // workers of whose death this rank knows
  Nanos time_ahead_ = 0;       // of the actors' time before the clock's, after a resume
};

// mean += share * replica.  In order of the servers it makes the solver's vectors of replicated masters, the
// same bits wherever they are made.
inline void AddReplica(float* mean, const float* replica, double share, int64_t n) {
  if (share == 0) return;
  const auto factor = static_cast<float>(share);
  for (int64_t i = 0; i < n; ++i) mean[i] += factor * replica[i];
}

// The same for the model.  What is frozen is the same in all replicas, and its mean too: shares that are rounded could
// make another number of it.
inline void AddModel(const ArenaLayout& layout, const float* replica, double share, float* mean) {
  AddReplica(mean, replica, share, layout.size());
  if (share > 0) CopyFrozen(layout, replica, mean);
}

}  // namespace dtrain
