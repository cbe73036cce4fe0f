#include "framework/data/batches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace dtrain {
namespace {

// Computes the sample shapes of a batch of these samples.
void Shapes(const Dataset& dataset, Split split, std::span<const int64_t> indices,
            std::vector<Shape>& shapes) {
  if (shapes.empty()) {
    for (const FieldSpec& field : dataset.fields()) shapes.push_back(field.sample_shape);
  }
  dataset.SampleShapes(split, indices, shapes);
}

// Makes a mini-batch that is the remainder of a shard count by its samples: it is divided by those of a full one.  Else one
// image would move the weights as much as a full mini-batch does.
void Lighten(int64_t full, Batch& batch) {
  const double more = static_cast<double>(full) / static_cast<double>(batch.samples);
  batch.global_samples = full;
  batch.global_terms = std::llround(static_cast<double>(batch.terms) * more);
}

struct TrainingFiller {
  const Dataset& dataset;
  Sampler sampler;
  int worker;
  int workers;
  uint64_t first_step;
  uint64_t last_step;
  uint64_t step_offset;
  bool own;  // the worker's own mini-batches, not shares of global batches
  uint64_t shuffled_epoch = std::numeric_limits<uint64_t>::max();  // epoch of `order`
  std::vector<int64_t> order = {};
  std::vector<Shape> shapes = {};

  bool operator()(uint64_t k, Batch& batch) {
    if (first_step + k >= last_step) return false;
    const uint64_t step = first_step + k;
    const StepShare part = own ? sampler.OwnShareOf(step, worker, workers)
                               : sampler.ShareOf(step - step_offset, worker, workers);
    if (part.epoch != shuffled_epoch) {
      sampler.Shuffle(part.epoch, order);
      shuffled_epoch = part.epoch;
    }
    const std::span<const int64_t> all(order);
    const auto global = all.subspan(part.global.begin, part.global.size());
    const auto share = all.subspan(part.share.begin, part.share.size());
    // Uses the lengths of the global batch, so that all workers run programs of the same shapes.
    Shapes(dataset, Split::kTrain, global, shapes);
    batch.Resize(part.share.size(), shapes);
    batch.first_position = part.share.begin - part.global.begin;
    batch.global_samples = part.global.size();
    batch.terms = dataset.TermsOf(Split::kTrain, share);
    batch.global_terms = dataset.TermsOf(Split::kTrain, global);
    // A single worker has the batches of a synchronous run, whose last one of an epoch is a mean like the others.
    if (workers > 1 && batch.samples < part.full) Lighten(part.full, batch);
    batch.step = step;
    batch.epoch = part.epoch;
    dataset.Fill(Split::kTrain, share, part.epoch, batch);
    return true;
  }
};

struct EvaluationFiller {
  const Dataset& dataset;
  Split split;
  std::vector<Range> blocks;
  std::vector<int64_t> order;  // empty: the index order
  std::vector<int64_t> indices = {};
  std::vector<Shape> shapes = {};

  bool operator()(uint64_t k, Batch& batch) {
    if (k >= blocks.size()) return false;
    const Range block = blocks[k];
    indices.resize(static_cast<size_t>(block.size()));
    if (order.empty()) {
      std::iota(indices.begin(), indices.end(), block.begin);
    } else {
      std::copy_n(order.begin() + block.begin, block.size(), indices.begin());
    }
    Shapes(dataset, split, indices, shapes);
    batch.Resize(block.size(), shapes);
    batch.first_position = block.begin;
    batch.global_samples = block.size();
    batch.terms = batch.global_terms = dataset.TermsOf(split, indices);
    batch.step = k;
    batch.epoch = 0;
    dataset.Fill(split, indices, kNoEpoch, batch);
    return true;
  }
};

}  // namespace

BatchFiller TrainingBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                            uint64_t first_step, uint64_t last_step, int64_t step_offset) {
  const auto offset = static_cast<uint64_t>(step_offset);  // a negative one wraps around, and back
  return TrainingFiller{dataset, sampler, worker, workers, first_step, last_step, offset, false};
}

BatchFiller OwnBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                       uint64_t first) {
  return TrainingFiller{
      dataset, sampler, worker, workers, first, std::numeric_limits<uint64_t>::max(), 0, true};
}

BatchFiller EvaluationBatches(const Dataset& dataset, Split split, std::vector<Range> blocks,
                              std::vector<int64_t> order) {
  return EvaluationFiller{dataset, split, std::move(blocks), std::move(order)};
}

}  // namespace dtrain
