// SimRank: one rank of a simulation: a driver with its actors, and the virtual compute of its
// worker.
//
// The rank's exchange thread is modelled as one processor: arithmetic on vectors occupies it, and
// later work waits.  The worker computes in parallel.
#pragma once

#include <memory>

#include "framework/cluster/compute_model.h"
#include "framework/exchange/rank_parts.h"
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
  // The references outlive the rank.  `dependencies` must use the clock of `events`.
  SimRank(const SimulationSetup& setup, Rank rank, EventQueue& events, const ComputeModel& compute,
          RankDependencies dependencies);
  // Waits for a step that the source is computing, since it writes into this rank's memory.
  ~SimRank();

  // Call it when there may be work for this rank.  The rank looks for it now, or when its processor
  // is free.
  void Wake();
  void Leave();
  // Makes the rank do nothing for this long (Faults::Stop).
  void Stop(Nanos lasts);
  // Makes the rank die.  Its actors get no more events; effects that they have asked for are
  // carried out, then its neighbours are notified (Driver::Die).  While messages are counted for a
  // boundary, the death is postponed until the boundary is left.
  void Die();
  // Calls `kill` when the worker has ended `steps` steps, before the next one.
  void DieBehind(int64_t steps, std::function<void()> kill);
  // Call these at a boundary.  SaveActors saves the actors; Visit visits the state of this rank
  // outside of its actors.
  StateRecord SaveActors() { return parts_.Save(); }
  void Visit(StateVisitor& visitor);

  Driver& driver() { return parts_.driver; }
  const Quiescence& quiescence() const { return parts_.quiescence; }
  const RankTimeline* timeline() const { return parts_.timeline.get(); }
  const SimulatedWorker& worker() const { return worker_; }
  // Totals of the whole run, those from before a resume included.
  Collective::Traffic traffic() const;
  CompressionReport compression() const;
  ProtocolReport protocol() const;
  ProtocolReport worker_protocol() const;
  const std::vector<Nanos>& step_times() const { return step_times_; }  // of worker 0
  std::function<void()> on_boundary;  // called when this rank reaches a boundary

 private:
  // Sets the worker's samples, if they were not saved, to those of its share of a batch in each of
  // its steps.
  void SupposeSamples();
  void VisitCounts(StateVisitor& visitor);
  void VisitProtocol(StateVisitor& visitor);
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
  Collective::Traffic traffic_before_;  // totals from before a resume
  CompressionReport compression_before_;
  ProtocolReport protocol_before_, worker_protocol_before_;
  std::vector<Nanos> step_times_;
  int64_t last_step_ = -1;  // kill_ is called after this step
  std::function<void()> kill_;
  bool buried_ = false;
  bool dies_later_ = false;  // it dies when the coming boundary is left
  bool look_scheduled_ = false;
  bool boundary_reported_ = false;
  Nanos timer_scheduled_ = -1;
  Nanos busy_until_ = 0;
  Nanos stopped_until_ = 0;
  std::vector<size_t> unannounced_;  // layers' gradients that became ready while it was stopped
  StepReport report_;                // of the current step; complete after EndCompute
  bool computing_ = false;           // the source is computing the step
  Nanos compute_time_ = 0;           // virtual compute time of the step
  Nanos started_ = 0;                // time at which its compute began
  Nanos asked_ = 0;                  // time at which the step was begun
  Nanos computed_ = 0;               // time at which its last gradient was ready
};

}  // namespace dtrain
