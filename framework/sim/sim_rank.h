// SimRank: one rank of a simulation - a driver with its actors, and the virtual compute of its
// worker.
//
// The rank's exchange thread is one processor: arithmetic on vectors occupies it, and what is
// behind waits.  Compute goes on beside it.
#pragma once

#include <memory>

#include "framework/sim/compute_model.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/sim_mail.h"
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
  // `initial`: the weights to begin with, of the whole model.  Everything else outlives the rank.
  // `mail` is null in a world of one rank.
  SimRank(const SimulationSetup& setup, Rank rank, EventQueue& events, const ComputeModel& compute,
          BlobPools* pools, const Piece& initial, std::unique_ptr<SimMail> mail,
          std::unique_ptr<Collective> collective);

  // Something may have come for this rank: looks now, or when its processor is free.
  void Wake();
  void Leave();

  Driver& driver() { return *driver_; }
  const Rest& rest() const { return *rest_; }
  SimMail* mail() { return mail_.get(); }
  const RankTimeline* timeline() const { return timeline_.get(); }
  const SimulatedWorker& worker() const { return worker_; }
  const StepOutcome& outcome() const { return outcome_; }
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  std::function<void()> on_rest;  // called when this rank reaches rest

 private:
  void Look();
  void TellRest();
  bool StepMoved();
  void BeginStep();
  void ComputeStep();
  void Announce(size_t piece);
  void FinishStep();

  const SimulationSetup& setup_;
  EventQueue& events_;
  const ComputeModel& compute_;
  VirtualClock clock_;
  std::unique_ptr<SimMail> mail_;
  std::unique_ptr<Collective> collective_;
  std::unique_ptr<RankTimeline> timeline_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Rest> rest_;

  SimulatedWorker worker_;
  std::vector<double> step_seconds_;
  bool look_scheduled_ = false;
  bool told_rest_ = false;
  Nanos timer_scheduled_ = -1;
  Nanos busy_until_ = 0;
  bool begun_ = false;
  bool computing_ = false;
  StepReport report_;    // of the step that is computed
  StepOutcome outcome_;  // of the last one
  Nanos started_ = 0;    // when its compute began
  Nanos asked_ = 0;      // when the step was begun
  Nanos computed_ = 0;   // when its last gradient was there
};

}  // namespace dtrain
