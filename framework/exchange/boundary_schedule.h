// BoundarySchedule: when a run pauses - for an evaluation, a checkpoint or its end - counted in samples
// applied by all workers together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dtrain {

struct BoundarySchedule {
  int64_t epoch_samples = 1;
  int64_t batch = 1;                  // global
  int64_t evaluate_every_epochs = 0;  // 0: never, here and below
  int64_t evaluate_every_steps = 0;
  int64_t checkpoint_every_epochs = 0;
  int64_t checkpoint_every_steps = 0;
  // The strategy asks for these (Strategy::Boundaries).
  int64_t strategy_every_epochs = 0;
  int64_t strategy_after_steps = 0;  // once
  int64_t last_samples = 0;          // the end of the run
  // It is resumed where it ended early: nothing is flushed any more, for its model is known.
  bool ended_early = false;
  // Steps are so many more than batches of this size come to in the samples before: 0, unless the run was resumed with
  // another batch at an epoch's end.  Their numbers go on, so that a step keeps its number.
  int64_t step_offset = 0;

  int64_t steps_per_epoch() const { return (epoch_samples + batch - 1) / batch; }

  // Samples of the first `epochs` epochs; more than can be counted are as many as can be.
  int64_t SamplesOfEpochs(int64_t epochs) const {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return epochs > kMost / epoch_samples - 1 ? kMost : epochs * epoch_samples;
  }
  // Samples of the first `steps` global batches, as far as they are of this size: the last of an epoch may be smaller.
  int64_t SamplesOf(int64_t steps) const {
    const int64_t batches = std::max<int64_t>(steps - step_offset, 0);
    const int64_t within = std::min(batches % steps_per_epoch() * batch, epoch_samples);
    const int64_t whole = SamplesOfEpochs(batches / steps_per_epoch());
    return whole > std::numeric_limits<int64_t>::max() - within ? whole : whole + within;
  }
  // Whole global batches within `samples`.
  int64_t StepsOf(int64_t samples) const {
    const int64_t within = samples % epoch_samples;
    return step_offset + samples / epoch_samples * steps_per_epoch() + within / batch;
  }
  // The epoch that a step belongs to; both are counted from 0.
  int64_t EpochOfStep(int64_t step) const { return (step - step_offset) / steps_per_epoch(); }
  // The first pause behind `samples`.
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
  // True for a pause at `samples`, the first one after `before`, that was due at the end of the last epoch or
  // earlier: an asynchronous run applies the samples that its workers began before they heard of it.
  bool PausedForEpoch(int64_t before, int64_t samples) const {
    return samples / epoch_samples * epoch_samples >= NextAfter(before);
  }

 private:
  // The first multiple of `every` behind `count`.
  static int64_t Next(int64_t count, int64_t every) {
    const int64_t left = every - count % every;
    return count > std::numeric_limits<int64_t>::max() - left ? std::numeric_limits<int64_t>::max()
                                                              : count + left;
  }
};

}  // namespace dtrain
