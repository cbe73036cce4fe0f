// TrainedEpoch: the loss and, for classes, the number of correct predictions over an epoch's training samples, each
// sample with the weights at the time of its step.  The training pass computes the losses and scores anyway; only the
// counting of correct predictions is extra.
//
// Each worker adds up its own samples and sends the sums to rank 0 at a boundary.  Rank 0 adds them up in rank order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/exchange/boundary_schedule.h"

namespace dtrain {

struct TrainedEpoch {
  int64_t epoch = 0;  // epoch number, counted from 0
  int64_t samples = 0;
  int64_t terms = 0;  // terms of the loss (Batch): samples, or words
  double loss_sum = 0;
  int64_t correct = 0;  // correct predictions by the model's first metric; -1: not counted

  // Adds another part of the epoch.  If the parts belong to two epochs, only the later epoch is kept.
  void Add(const TrainedEpoch& part) {
    if (part.samples == 0 || part.epoch < epoch) return;
    if (part.epoch > epoch) *this = {.epoch = part.epoch};
    samples += part.samples;
    terms += part.terms;
    loss_sum += part.loss_sum;
    correct = std::min(correct, part.correct) < 0 ? -1 : correct + part.correct;
  }
};

// Assigns a worker's steps to epochs.  In synchronous runs the step number gives the epoch.  In asynchronous runs no
// worker knows how many samples the others have applied: between two boundaries it assumes that the others are as fast
// as itself.  An epoch at whose end the run pauses ends there for all workers.
class EpochCounter {
 public:
  EpochCounter(bool lockstep, int workers) : lockstep_(lockstep), workers_(workers) {}

  // Called at the start of a run and at each boundary.
  void BoundaryAt(int64_t samples_applied) {
    boundary_at_ = samples_applied;
    own_ = 0;
  }
  // `step` is the step number in the run, or in asynchronous runs the worker's own.  `found.epoch` is set here.
  void Add(const BoundarySchedule& rule, int64_t step, TrainedEpoch found) {
    found.epoch = lockstep_ ? rule.EpochOfStep(step) : EpochNow(rule);
    own_ += found.samples;
    trained_.Add(found);
  }
  // Returns the counts since the last call.
  TrainedEpoch Take() {
    const TrainedEpoch taken = trained_;
    trained_ = {.epoch = taken.epoch};
    return taken;
  }

 private:
  int64_t EpochNow(const BoundarySchedule& rule) const {
    const int64_t last = std::max(rule.NextAfter(boundary_at_), boundary_at_ + 1) - 1;
    return std::min(boundary_at_ + own_ * workers_, last) / rule.epoch_samples;
  }

  bool lockstep_;
  int workers_;
  int64_t boundary_at_ = 0;
  int64_t own_ = 0;  // samples since the last boundary
  TrainedEpoch trained_;
};

}  // namespace dtrain
