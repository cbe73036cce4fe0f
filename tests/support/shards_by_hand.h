// The mini-batches of a worker of an asynchronous run, computed sample by sample from the rules in data/sampler.h: an
// independent check of the sampler's arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {

class ShardsByHand {
 public:
  // Deals samples to the shards, and those of a batch to the workers, in turn; each then has as many consecutive ones.
  static std::vector<int64_t> Deal(int64_t count, int hands) {
    std::vector<int64_t> sizes(static_cast<size_t>(hands));
    for (int64_t i = 0; i < count; ++i) ++sizes[static_cast<size_t>(i % hands)];
    return sizes;
  }

  ShardsByHand(int64_t samples, int64_t batch, int workers, int worker)
      : shards_(Deal(samples, workers)),
        size_(Deal(std::min(batch, samples), workers)[static_cast<size_t>(worker)]),
        worker_(static_cast<uint64_t>(worker)) {
    if (size_ == 0) size_ = 1;  // there are more workers than samples in a batch
    Enter();
  }

  // Returns the next mini-batch: its pass, and its positions in the order of that pass.
  std::pair<uint64_t, Range> Next() {
    while (at_ == end_) {
      ++pass_;
      Enter();
    }
    const int64_t begin = at_;
    for (int64_t i = 0; i < size_ && at_ < end_; ++i) ++at_;
    return {pass_, {begin, at_}};
  }

 private:
  void Enter() {
    const size_t shard = (worker_ + pass_) % shards_.size();
    at_ = 0;
    for (size_t s = 0; s < shard; ++s) at_ += shards_[s];
    end_ = at_ + shards_[shard];
  }

  std::vector<int64_t> shards_;
  int64_t size_;
  uint64_t worker_;
  uint64_t pass_ = 0;
  int64_t at_ = 0, end_ = 0;
};

}  // namespace dtrain
