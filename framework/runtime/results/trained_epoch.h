// TrainedEpoch: what training passes found of the samples of an epoch, as the weights were when each was
// seen - the loss and, of classes, how many were right.  The losses and scores are those that the
// gradients are computed from, so nothing is computed for it but the counting of the right ones.
//
// Each worker sums up its own samples and hands them in where the run pauses; rank 0 adds them up, in
// rank order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/exchange/boundary_schedule.h"

namespace dtrain {

struct TrainedEpoch {
  int64_t epoch = 0;  // counted from 0
  int64_t samples = 0;
  int64_t terms = 0;  // of the loss (Batch): samples, or words
  double loss_sum = 0;
  int64_t correct = 0;  // by the model's first metric; -1: nobody has counted

  // Another part of it; of two epochs the later one counts.
  void Add(const TrainedEpoch& part) {
    if (part.samples == 0 || part.epoch < epoch) return;
    if (part.epoch > epoch) *this = {.epoch = part.epoch};
    samples += part.samples;
    terms += part.terms;
    loss_sum += part.loss_sum;
    correct = std::min(correct, part.correct) < 0 ? -1 : correct + part.correct;
  }
};

// A worker's.  In synchronous runs a step's number says its epoch.  In asynchronous ones no worker
// knows how many samples the others have applied: from boundary to boundary it takes the others to be as fast
// as itself, and an epoch at whose end the run pauses ends there for all.
class EpochCounter {
 public:
  EpochCounter(bool synchronous, int workers) : synchronous_(synchronous), workers_(workers) {}

  // Where a run begins, and at each boundary.
  void BoundaryAt(int64_t samples_applied) {
    rested_at_ = samples_applied;
    own_ = 0;
  }
  // `step`: its number in the run, or the worker's own; `found` has no epoch yet.
  void Add(const BoundarySchedule& rule, int64_t step, TrainedEpoch found) {
    found.epoch = synchronous_ ? rule.EpochOfStep(step) : EpochNow(rule);
    own_ += found.samples;
    trained_.Add(found);
  }
  // What there is since the last call.
  TrainedEpoch Take() {
    const TrainedEpoch taken = trained_;
    trained_ = {.epoch = taken.epoch};
    return taken;
  }

 private:
  int64_t EpochNow(const BoundarySchedule& rule) const {
    const int64_t last = std::max(rule.NextAfter(rested_at_), rested_at_ + 1) - 1;
    return std::min(rested_at_ + own_ * workers_, last) / rule.epoch_samples;
  }

  bool synchronous_;
  int workers_;
  int64_t rested_at_ = 0;
  int64_t own_ = 0;  // samples since then
  TrainedEpoch trained_;
};

}  // namespace dtrain
