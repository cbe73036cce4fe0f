#include "framework/data/sampler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace dtrain {

namespace {

// Fisher-Yates shuffle of [0, count) from the end, by calls of `swap`(i, j); position i takes its random number from
// word i.
template <class Swap>
void ShuffleBy(const Random& random, uint64_t count, Swap swap) {
  std::array<uint32_t, 4> words{};
  for (uint64_t i = count; i-- > 1;) {
    if (i % 4 == 3 || i + 1 == count) words = random.Block(i / 4);
    swap(i, (words[i % 4] * (i + 1)) >> 32);
  }
}

}  // namespace

Sampler::Sampler(uint64_t seed, int64_t train_size, int64_t batch,
                 std::vector<SampleLength> lengths)
    : seed_(seed), train_size_(train_size), batch_(batch) {
  if (!lengths.empty()) {
    DT_CHECK(static_cast<int64_t>(lengths.size()) == train_size) << lengths.size();
    lengths_ = std::make_shared<const std::vector<SampleLength>>(std::move(lengths));
  }
  DT_CHECK(train_size > 0 && train_size < (int64_t{1} << 32) && batch > 0)
      << train_size << " samples, batch " << batch;
  steps_per_epoch_ = static_cast<uint64_t>((train_size + batch - 1) / batch);
}

Sampler::Sampler(uint64_t seed, const Dataset& dataset, int64_t batch)
    : Sampler(seed, dataset.size(Split::kTrain), batch, dataset.Lengths(Split::kTrain)) {}

StepShare Sampler::ShareOf(uint64_t step, int worker, int workers) const {
  DT_CHECK(worker >= 0 && worker < workers) << "worker " << worker << " of " << workers;
  StepShare part;
  part.step = step;
  part.epoch = EpochOf(step);
  part.global.begin = static_cast<int64_t>(BatchOf(step)) * batch_;
  part.global.end = std::min(part.global.begin + batch_, train_size_);
  part.share = SplitEvenly(part.global, workers, worker);
  return part;
}

StepShare Sampler::OwnShareOf(uint64_t i, int worker, int workers) const {
  DT_CHECK(worker >= 0 && worker < workers) << "worker " << worker << " of " << workers;
  const int64_t size =
      std::max<int64_t>(SplitEvenly({0, std::min(batch_, train_size_)}, workers, worker).size(), 1);
  // A worker reads every shard once in W passes: a cycle of known length.
  const auto batches_in = [&](int shard) {
    const int64_t samples = SplitEvenly({0, train_size_}, workers, shard).size();
    return static_cast<uint64_t>((samples + size - 1) / size);
  };
  uint64_t cycle = 0;
  for (int shard = 0; shard < workers; ++shard) cycle += batches_in(shard);
  StepShare part;
  part.step = i;
  part.epoch = i / cycle * static_cast<uint64_t>(workers);
  uint64_t within = i % cycle;
  int shard = worker;
  while (within >= batches_in(shard)) {
    within -= batches_in(shard);
    shard = (shard + 1) % workers;
    ++part.epoch;
  }
  const Range all = SplitEvenly({0, train_size_}, workers, shard);
  part.share.begin = all.begin + static_cast<int64_t>(within) * size;
  part.share.end = std::min(part.share.begin + size, all.end);
  part.global = part.share;
  part.full = size;
  return part;
}

int64_t Sampler::MaxShare(int workers) const {
  return (std::min(batch_, train_size_) + workers - 1) / workers;
}

void Sampler::Shuffle(uint64_t epoch, std::vector<int64_t>& order) const {
  order.resize(static_cast<size_t>(train_size_));
  std::iota(order.begin(), order.end(), 0);
  ShuffleBy(Random(seed_, Purpose::kShuffle, epoch), order.size(),
            [&](uint64_t i, uint64_t j) { std::swap(order[i], order[j]); });
  if (lengths_) GroupByLength(epoch, order);
}

// A smaller last batch stays the last.
void Sampler::GroupByLength(uint64_t epoch, std::vector<int64_t>& order) const {
  const auto at = [&](int64_t position) { return order.begin() + std::min(position, train_size_); };
  const auto shorter = [&](int64_t a, int64_t b) {
    return std::pair((*lengths_)[a], a) < std::pair((*lengths_)[b], b);
  };
  const int64_t pool = kPoolBatches * batch_;
  for (int64_t begin = 0; begin < train_size_; begin += pool) {
    std::sort(at(begin), at(begin + pool), shorter);
  }
  const auto swap_batches = [&](uint64_t i, uint64_t j) {
    if (i == j) return;
    const auto first = at(static_cast<int64_t>(i) * batch_);
    std::swap_ranges(first, first + batch_, at(static_cast<int64_t>(j) * batch_));
  };
  ShuffleBy(Random(seed_, Purpose::kShuffle, epoch, 1), static_cast<uint64_t>(train_size_ / batch_),
            swap_batches);
}

std::vector<Range> EvaluationBlocks(int64_t size, int64_t block) {
  DT_CHECK(block > 0) << "evaluation block of " << block;
  std::vector<Range> blocks;
  for (int64_t begin = 0; begin < size; begin += block) {
    blocks.push_back({begin, std::min(begin + block, size)});
  }
  return blocks;
}

}  // namespace dtrain
