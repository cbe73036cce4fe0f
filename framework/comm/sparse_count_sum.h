// CountSum: all-reduce of a few integers, in O(log P) messages per rank.
//
// It uses recursive doubling.  Ranks at or above the largest power of two send theirs to a rank
// below it first and get the sums back.  Sums of integers do not depend on the order, so every rank
// has the same.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_messages.h"
#include "framework/comm/sparse_schedule.h"

namespace dtrain {

SparseSchedule CountSumSchedule(int ranks);  // a block has all numbers

class CountSum {
 public:
  explicit CountSum(SparseLink& link);

  // Starts the sums, which replace `numbers`.  All ranks have the same number of them.
  void Begin(std::vector<int64_t>& numbers);
  bool Advance();  // returns true when done, or if nothing was begun

 private:
  void Post();
  void Take();

  SparseMessages messages_;
  std::vector<SparseTurn> turns_;
  bool gets_sums_ = false;  // what arrives are the sums, not terms
  std::vector<int64_t>* numbers_ = nullptr;
  std::vector<int64_t> arriving_;
  size_t next_ = 0;  // the turn in flight
};

}  // namespace dtrain
