// Driver: carries out one worker actor's effects - reductions on a Collective, solver updates on the
// weights - and turns their ends into events.
//
// It owns the vectors of the worker: the gradient arena, the weights (Blob versions) and the solver
// state.  Long work is done in slices of 1 MB, so that whoever polls it can poll the network in
// between.  One thread calls a Driver (the exchange thread, or the trainer when there is one worker).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/layout.h"
#include "framework/device/blob.h"
#include "framework/device/buffer.h"
#include "framework/solver/solver.h"
#include "framework/strategies/actor.h"
#include "framework/strategies/exchange.h"

namespace dtrain {

struct DriverOptions {
  SolverConfig solver;
  double epochs = 1;             // of the whole run, for the schedule
  int64_t epoch_samples = 1;
  int64_t samples_applied = 0;   // at the start: > 0 after a resume
  int workers = 1;
};

class Driver : public Effects {
 public:
  // `layout` outlives the driver.  `collective` is null for one worker.
  Driver(std::unique_ptr<Actor> actor, const ArenaLayout& layout, DriverOptions options,
         Collective* collective);

  // Sets weights and solver vectors by name (absent ones are zero); before the first step.
  void Restore(const std::vector<float>& weights,
               const std::map<std::string, std::vector<float>>& solver);

  // The trainer's events.
  void Begin();
  void Ready(Range range) { actor_->OnReady(range, *this); }
  // The last Ready of a step: the report rides behind it.
  void ReadyLast(Range range, const StepReport& report);
  bool IsLast(Range range) const { return range.end == layout_.size(); }

  // Moves everything along a little; true when something moved.
  bool Progress();
  bool Busy() const { return !reducing_.empty() || !applying_.empty(); }
  bool StepStarted() const { return started_; }
  bool StepEnded() const { return ended_; }
  StepOutcome outcome() const { return outcome_; }

  float* gradients() { return gradients_.f32(); }
  const Blob& weights() const { return weights_; }
  std::span<float* const> solver_state() const { return state_; }
  double learning_rate() const { return lr_; }
  Collective::Traffic traffic() const;
  std::string Describe() const;

  // Effects
  void StartStep() override;
  void Reduce(Range range) override;
  void Apply(Range range) override;
  void EndStep() override;

 private:
  // The report rides behind the last gradient in these extra elements of the arena.
  enum Tail { kSamples, kLoss, kStop, kTailSize };

  struct Reduction {
    int64_t ticket;
    Range range;
  };

  bool ProgressReductions();
  bool ProgressUpdates();
  void UpdateSlice(Range slice);
  void ReadTail();

  const std::unique_ptr<Actor> actor_;
  const ArenaLayout& layout_;
  const DriverOptions options_;
  const LearningRate learning_rate_;
  Collective* const collective_;

  Buffer gradients_;                 // layout_.size() + kTailSize
  std::unique_ptr<BlobPool> pool_;
  Blob weights_;                     // current version
  Blob next_;                        // being written; empty until the step's first update
  std::vector<Buffer> state_memory_;
  std::vector<float*> state_;

  std::vector<Reduction> reducing_;  // in the order they were started
  std::vector<Range> applying_;      // in order; the first one shrinks slice by slice
  Range applying_whole_;             // the first one as it was asked for
  bool started_ = false;
  bool ended_ = false;
  int64_t samples_applied_;
  double lr_ = 0;
  float gradient_scale_ = 1;
  bool finite_ = true;
  StepOutcome outcome_;
};

}  // namespace dtrain
