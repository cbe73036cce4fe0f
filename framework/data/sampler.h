// Sampler decides which samples the batch of a step holds, and which of them belong to each worker.
//
// All of it is a pure function of (seed, training size, batch, step): there is no state to save, and neither the order
// nor the batches depend on the number of workers.
//
//   epoch e shuffles the samples by counted random numbers (Purpose::kShuffle, a = e); samples with
//   lengths are then sorted by length within pools of kPoolBatches batches, and the whole batches
//   shuffled (b = 1), so that a batch holds samples of like length;
//   its global batch b holds positions [b B, min((b + 1) B, N)) of that order: the last batch of an
//   epoch may be smaller, no sample is dropped;
//   step s, counted from 0, is batch s % ceil(N / B) of epoch s / ceil(N / B);
//   worker w of W takes a contiguous share, SplitEvenly(batch, W, w), which is empty for some
//   workers where a last batch has fewer samples than there are workers.
//
// This holds for synchronous runs.  In an asynchronous run each worker goes through the data at its own speed: pass p
// has the order of epoch p, divided into W shards; worker w reads shard (w + p) mod W in mini-batches of SplitEvenly(B,
// W, w) samples, the last of a shard smaller.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/core/layout.h"
#include "framework/data/dataset.h"

namespace dtrain {

// Describes one worker's part of one step.
struct StepShare {
  uint64_t step = 0;
  uint64_t epoch = 0;
  Range global;  // positions in the epoch's order: the whole batch
  Range share;   // those of this worker, inside `global`
  // OwnShareOf sets it to the samples of the worker's mini-batches, but for the last of a shard.
  int64_t full = 0;
};

class Sampler {
 public:
  static constexpr int64_t kPoolBatches = 50;

  // Requires 0 < train_size < 2^32 and batch > 0.  `lengths` has every sample's length (Dataset::Lengths), or is empty.
  Sampler(uint64_t seed, int64_t train_size, int64_t batch, std::vector<SampleLength> lengths = {});
  // Makes a sampler for the training split of a set.
  Sampler(uint64_t seed, const Dataset& dataset, int64_t batch);

  int64_t train_size() const { return train_size_; }
  int64_t batch() const { return batch_; }
  uint64_t steps_per_epoch() const { return steps_per_epoch_; }

  uint64_t EpochOf(uint64_t step) const { return step / steps_per_epoch_; }
  uint64_t BatchOf(uint64_t step) const { return step % steps_per_epoch_; }
  uint64_t StepOf(uint64_t epoch, uint64_t batch) const { return epoch * steps_per_epoch_ + batch; }

  StepShare ShareOf(uint64_t step, int worker, int workers) const;

  // Returns an asynchronous worker's i-th mini-batch: `global` is the share, and `step` is i.
  StepShare OwnShareOf(uint64_t i, int worker, int workers) const;

  // Returns the largest number of samples of a share, for which batches are allocated.
  int64_t MaxShare(int workers) const;

  // Sets order[p] to the sample at position p of the epoch.  Reuses the memory of `order`.
  void Shuffle(uint64_t epoch, std::vector<int64_t>& order) const;

 private:
  void GroupByLength(uint64_t epoch, std::vector<int64_t>& order) const;

  uint64_t seed_;
  int64_t train_size_;
  int64_t batch_;
  uint64_t steps_per_epoch_;
  std::shared_ptr<const std::vector<SampleLength>> lengths_;  // shared by copies; null: none
};

// Returns the fixed blocks of an evaluation: [0, block), [block, 2 block), ..., the last one may be smaller.  They do
// not depend on the number of ranks; each rank evaluates whole blocks.
std::vector<Range> EvaluationBlocks(int64_t size, int64_t block);

}  // namespace dtrain
