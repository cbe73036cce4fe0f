// SimRank: one rank of a simulation - a driver with its actors, and the virtual compute of its
// worker.
//
// The rank's exchange thread is one processor: arithmetic on vectors occupies it, and what is
// behind waits.  Compute goes on beside it.
#pragma once

#include <memory>

#include "framework/exchange/rank_parts.h"
#include "framework/sim/compute_model.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/simulation.h"

namespace dtrain {

class VirtualClock : public Clock {
 public:
  explicit VirtualClock(const EventQueue& events) : events_(events) {}
  Nanos Now() const override { return events_.now(); }

 private:
  const EventQueue& events_;
};

class SimRank {
 public:
  // Everything but the dependencies outlives the rank, whose clock is that of the events.
  SimRank(const SimulationSetup& setup, Rank rank, EventQueue& events, const ComputeModel& compute,
          RankDependencies dependencies);
  // Waits for a step that the source computes: it writes into this rank's memory.
  ~SimRank();

  // Something may have come for this rank: looks now, or when its processor is free.
  void Wake();
  void Leave();
  // From now on it does nothing for so long (Faults::Stop).
  void Stop(Nanos lasts);
  // Its actors see nothing any more.  What they have asked for goes out; then their neighbours hear of
  // it.  While a boundary is being counted nobody dies, but when it is left.
  void Die();
  // Calls `kill` when its worker has ended so many steps, before the next one.
  void DieBehind(int64_t steps, std::function<void()> kill);
  // At a boundary: what this rank has beside its actors.
  StateRecord SaveActors() { return parts_.Save(); }
  void Visit(StateVisitor& visitor);
  // What has been counted besides, behind that; kHistory is its first field.
  static constexpr char kHistory[] = "samples";
  void VisitHistory(StateVisitor& visitor);
  // Where nobody has counted them: of the steps that the worker has had, as many as its share of a batch has.
  void SupposeSamples();

  Driver& driver() { return parts_.driver; }
  const Quiescence& quiescence() const { return parts_.quiescence; }
  const RankTimeline* timeline() const { return parts_.timeline.get(); }
  const SimulatedWorker& worker() const { return worker_; }
  // Over all the run, also before it was resumed.
  Collective::Traffic traffic() const;
  CompressionReport compression() const;
  ProtocolReport protocol() const;
  ProtocolReport worker_protocol() const;
  const std::vector<Nanos>& step_times() const { return step_times_; }  // of worker 0
  std::function<void()> on_boundary;  // called when this rank reaches a boundary

 private:
  void VisitCounts(StateVisitor& visitor);
  void Look();
  void ReportBoundary();
  bool StepMoved();
  bool Bury();
  void BeginStep();
  void ComputeStep();
  void EndCompute();
  void Announce(size_t gradient);
  void AnnounceLate();
  void AnnounceNow(size_t gradient);
  void FinishStep();

  const SimulationSetup& setup_;
  EventQueue& events_;
  const ComputeModel& compute_;
  RankParts parts_;

  SimulatedWorker worker_;
  Collective::Traffic traffic_before_;  // what came before a resume
  CompressionReport compression_before_;
  ProtocolReport protocol_before_, worker_protocol_before_;
  std::vector<Nanos> step_times_;
  int64_t last_step_ = -1;  // behind which kill_ is called
  std::function<void()> kill_;
  bool buried_ = false;
  bool dies_later_ = false;  // when the rest that is being counted is left
  bool look_scheduled_ = false;
  bool boundary_reported_ = false;
  Nanos timer_scheduled_ = -1;
  Nanos busy_until_ = 0;
  Nanos stopped_until_ = 0;
  std::vector<size_t> unannounced_;  // layers' gradients that became ready while it was stopped
  StepReport report_;                // of the step that is computed, once it is
  bool computing_ = false;           // the source is at it
  Nanos compute_time_ = 0;           // of that step
  Nanos started_ = 0;                // when its compute began
  Nanos asked_ = 0;                  // when the step was begun
  Nanos computed_ = 0;               // when its last gradient was there
};

}  // namespace dtrain
