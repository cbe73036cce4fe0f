// The arithmetic of sparse sums, done a little at a time.  Begin sets a task.  Advance does as much
// of it as the link's budget grants, and returns true when it is done.  The memory that is read and
// written must not move until then.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_list.h"
#include "framework/comm/sparse_messages.h"
#include "framework/core/kth_largest.h"
#include "framework/core/layout.h"

namespace dtrain {

// The k-th largest magnitude of values that may be on several ranks, which add up their counts of
// each digit.  The digits are narrow, so that the messages are short.
using KthLargestSum = KthLargest<8, 8, 8, 8>;

// MergeSum: `to` = a + b.  At positions that both have, a's value is the first operand.
class MergeSum {
 public:
  void Begin(SparseEntries a, SparseEntries b, SparseList& to);
  bool Advance(SparseLink& link);

 private:
  SparseEntries a_, b_;
  SparseList* to_ = nullptr;
  int64_t next_a_ = 0, next_b_ = 0;
};

// LargestCut: puts the k entries of largest magnitude (of equal ones those at the lowest positions)
// into `kept`, and the others into `dropped`.
class LargestCut {
 public:
  void Begin(SparseEntries from, int64_t k, SparseList& kept, SparseList& dropped);
  bool Advance(SparseLink& link);

 private:
  bool Look(SparseLink& link);
  bool Split(SparseLink& link);

  SparseEntries from_;
  SparseList* kept_ = nullptr;
  SparseList* dropped_ = nullptr;
  KthLargestSum largest_;
  int digit_ = 0;
  int64_t next_ = 0;
  int64_t equals_ = 0;  // entries equal to the k-th that are still to be kept
};

// RegionSum: `to` = the sum of `terms`, all within `region`, added in their order.
//
// It goes through the region in windows.  A window has dense sums, and a bitmap of the positions
// that have one.
class RegionSum {
 public:
  void Begin(const std::vector<SparseEntries>& terms, Range region, SparseList& to);
  bool Advance(SparseLink& link);

 private:
  static constexpr int kWindow = 1 << 14;  // positions; their sums fit into the L1 cache

  void SkipEmpty();
  int64_t AddWindow();
  void EmptyWindow();

  const std::vector<SparseEntries>* terms_ = nullptr;
  std::vector<int64_t> next_;  // next entry of each term
  SparseList* to_ = nullptr;
  int64_t window_ = 0;  // first position of the window
  std::vector<float> sums_ = std::vector<float>(kWindow);
  std::vector<uint64_t> touched_ = std::vector<uint64_t>(kWindow / 64);
};

// ThresholdCut: puts the entries with magnitude bits of at least `least` into `kept`.
class ThresholdCut {
 public:
  void Begin(SparseEntries from, uint32_t least, SparseList& kept);
  bool Advance(SparseLink& link);

 private:
  SparseEntries from_;
  SparseList* kept_ = nullptr;
  uint32_t least_ = 0;
  int64_t next_ = 0;
};

// Difference: puts the entries of `mine` at positions that are in none of `parts` into `to`.  The
// positions of all parts, one after the other, are ascending.
class Difference {
 public:
  void Begin(SparseEntries mine, const std::vector<SparseEntries>& parts, SparseList& to);
  bool Advance(SparseLink& link);

 private:
  SparseEntries mine_;
  const std::vector<SparseEntries>* parts_ = nullptr;
  SparseList* to_ = nullptr;
  int64_t next_ = 0;
  size_t part_ = 0;
  int64_t next_of_part_ = 0;
};

}  // namespace dtrain
