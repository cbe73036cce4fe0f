#include "framework/data/batches.h"

#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace dtrain {
namespace {

struct TrainingFiller {
  const Dataset& dataset;
  Sampler sampler;
  int worker;
  int workers;
  uint64_t first_step;
  uint64_t last_step;
  bool own;  // mini-batches of its own, not shares of global ones
  uint64_t shuffled_epoch = std::numeric_limits<uint64_t>::max();  // the one that `order` holds
  std::vector<int64_t> order = {};

  bool operator()(uint64_t k, Batch& batch) {
    if (first_step + k >= last_step) return false;
    const uint64_t step = first_step + k;
    const StepShare part =
        own ? sampler.OwnShareOf(step, worker, workers) : sampler.ShareOf(step, worker, workers);
    if (part.epoch != shuffled_epoch) {
      sampler.Shuffle(part.epoch, order);
      shuffled_epoch = part.epoch;
    }
    batch.Resize(part.share.size());
    batch.first_position = part.share.begin - part.global.begin;
    batch.global_samples = part.global.size();
    batch.step = part.step;
    batch.epoch = part.epoch;
    const std::span<const int64_t> all(order);
    dataset.Fill(Split::kTrain, all.subspan(part.share.begin, part.share.size()), part.epoch,
                 batch);
    return true;
  }
};

struct EvaluationFiller {
  const Dataset& dataset;
  Split split;
  std::vector<Range> blocks;
  std::vector<int64_t> indices = {};

  bool operator()(uint64_t k, Batch& batch) {
    if (k >= blocks.size()) return false;
    const Range block = blocks[k];
    indices.resize(static_cast<size_t>(block.size()));
    std::iota(indices.begin(), indices.end(), block.begin);
    batch.Resize(block.size());
    batch.first_position = block.begin;
    batch.global_samples = block.size();
    batch.step = k;
    batch.epoch = 0;
    dataset.Fill(split, indices, kNoEpoch, batch);
    return true;
  }
};

}  // namespace

BatchFiller TrainingBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                            uint64_t first_step, uint64_t last_step) {
  return TrainingFiller{dataset, sampler, worker, workers, first_step, last_step, false};
}

BatchFiller OwnBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                       uint64_t first) {
  return TrainingFiller{
      dataset, sampler, worker, workers, first, std::numeric_limits<uint64_t>::max(), true};
}

BatchFiller EvaluationBatches(const Dataset& dataset, Split split, std::vector<Range> blocks) {
  return EvaluationFiller{dataset, split, std::move(blocks)};
}

}  // namespace dtrain
