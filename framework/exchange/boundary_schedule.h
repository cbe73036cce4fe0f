// BoundarySchedule: the points at which a run pauses for an evaluation, a checkpoint or its end.
// Positions are counted in samples applied by all workers together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dtrain {

struct BoundarySchedule {
  int64_t epoch_samples = 1;
  int64_t batch = 1;                  // global
  int64_t evaluate_every_epochs = 0;  // 0 means never, here and in the members below
  int64_t evaluate_every_steps = 0;
  int64_t checkpoint_every_epochs = 0;
  int64_t checkpoint_every_steps = 0;
  // Boundaries that the strategy asks for (Strategy::Boundaries).
  int64_t strategy_every_epochs = 0;
  int64_t strategy_after_steps = 0;  // once
  int64_t last_samples = 0;          // the end of the run
  // The run is resumed at a point where it had ended early.  The final model was already saved, so the strategy's
  // vectors of gradients that are not yet applied are not flushed again.
  bool ended_early = false;
  // Holds the difference between the number of steps so far and the number of batches of size
  // `batch` in the samples so far.  It is 0 unless the run was resumed with another batch size at
  // the end of an epoch; step numbers then continue from those of the first run.
  int64_t step_offset = 0;

  int64_t steps_per_epoch() const { return (epoch_samples + batch - 1) / batch; }

  // Returns the samples of the first `epochs` epochs, or the largest int64_t if the product
  // overflows.
  int64_t SamplesOfEpochs(int64_t epochs) const {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return epochs > kMost / epoch_samples - 1 ? kMost : epochs * epoch_samples;
  }
  // Returns the samples of the first `steps` global batches.  Batches before step_offset are not
  // counted, and the last batch of an epoch may be smaller.
  int64_t SamplesOf(int64_t steps) const {
    const int64_t batches = std::max<int64_t>(steps - step_offset, 0);
    const int64_t within = std::min(batches % steps_per_epoch() * batch, epoch_samples);
    const int64_t whole = SamplesOfEpochs(batches / steps_per_epoch());
    return whole > std::numeric_limits<int64_t>::max() - within ? whole : whole + within;
  }
  // Returns the number of whole global batches within `samples`.
  int64_t StepsOf(int64_t samples) const {
    const int64_t within = samples % epoch_samples;
    return step_offset + samples / epoch_samples * steps_per_epoch() + within / batch;
  }
  // Returns the epoch that a step belongs to.  Both are counted from 0.
  int64_t EpochOfStep(int64_t step) const { return (step - step_offset) / steps_per_epoch(); }
  // Returns the first boundary after `samples`.
  int64_t NextAfter(int64_t samples) const {
    int64_t next = last_samples;
    for (const int64_t every :
         {evaluate_every_epochs, checkpoint_every_epochs, strategy_every_epochs}) {
      if (every > 0) next = std::min(next, SamplesOfEpochs(Next(samples / epoch_samples, every)));
    }
    for (const int64_t every : {evaluate_every_steps, checkpoint_every_steps}) {
      if (every > 0) next = std::min(next, SamplesOf(Next(StepsOf(samples), every)));
    }
    const int64_t once = SamplesOf(strategy_after_steps);
    if (once > samples) next = std::min(next, once);
    return std::max(next, samples);
  }
  // The run is at a boundary, with `samples` applied; at the boundary before it had applied `before`.  Returns true if
  // this boundary was due by the end of the last complete epoch.  An asynchronous run reaches a boundary late, since it
  // also applies the steps that its workers started before the request to hold arrived.
  bool PausedForEpoch(int64_t before, int64_t samples) const {
    return samples / epoch_samples * epoch_samples >= NextAfter(before);
  }

 private:
  // Returns the first multiple of `every` after `count`.
  static int64_t Next(int64_t count, int64_t every) {
    const int64_t left = every - count % every;
    return count > std::numeric_limits<int64_t>::max() - left ? std::numeric_limits<int64_t>::max()
                                                              : count + left;
  }
};

}  // namespace dtrain
