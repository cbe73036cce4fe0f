// CountSum: the sums of a few whole numbers over all ranks, on every rank, in O(log P) messages.
//
// Recursive doubling; ranks from the largest power of two on hand theirs to a rank below it first and
// get the sums back.  Whole numbers: every rank has the same sums, whatever the order.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_messages.h"

namespace dtrain {

class CountSum {
 public:
  explicit CountSum(SparseLink& link);

  // As many numbers at all ranks.  Their sums take their place.
  void Begin(std::vector<int64_t>& numbers);
  bool Advance();  // true also where nothing was begun

 private:
  enum class Arriving { kNothing, kTerms, kSums };
  struct Round {
    Rank peer;
    bool sends;
    Arriving arriving;
  };

  void Post();
  void Take();

  SparseLink* link_;
  SparseMessages messages_;
  std::vector<Round> rounds_;
  std::vector<int64_t>* numbers_ = nullptr;
  std::vector<int64_t> arriving_;
  size_t next_ = 0;  // the round in flight
};

}  // namespace dtrain
