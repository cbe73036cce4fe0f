// What sparse sums compute, a little at a time: each Begin sets a task, and Advance does as much of it
// as the link's budget grants, and is true when it is done.  What is read and written stays in place
// until then.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "framework/comm/sparse_list.h"
#include "framework/comm/sparse_messages.h"
#include "framework/core/layout.h"

namespace dtrain {

// KthLargest: the k-th largest magnitude of values that may lie on several ranks.  A radix selection,
// from the top, by digits of eight bits: it is counted how many of the values that agree with the
// digits found so far have which next one.  (LargestSelection in compress/largest.h does the same with
// values at hand, in fewer looks: its digits have up to 2048 values.  Here the counts of each digit
// travel from rank to rank.)
//
//   for (int i = 0; i < KthLargest::kDigits; ++i) {
//     for (each part of the values) Count(part);   // and the counts of all ranks are summed
//     Next();
//   }
class KthLargest {
 public:
  static constexpr int kDigits = 4;
  static constexpr int kCounts = 256;

  KthLargest() : counts_(kCounts) {}
  void Begin(int64_t k);
  void Count(std::span<const float> values);
  std::vector<int64_t>& counts() { return counts_; }  // of the next digit
  void Next();

  // The k-th largest magnitude (core/magnitude.h); 0 where there are fewer than k, for k = 0 above all numbers.
  uint32_t bits() const { return bits_; }
  // Of those with just these bits, how many belong to the k largest.
  int64_t equals() const { return left_; }

 private:
  std::vector<int64_t> counts_;
  int64_t left_ = 0;
  int digit_ = 0;
  uint32_t bits_ = 0;
};

// MergeSum: `to` = a + b; where both have a position, a's value comes first.
class MergeSum {
 public:
  void Begin(SparseEntries a, SparseEntries b, SparseList& to);
  bool Advance(SparseLink& link);

 private:
  SparseEntries a_, b_;
  SparseList* to_ = nullptr;
  int64_t next_a_ = 0, next_b_ = 0;
};

// LargestCut: the k entries of the largest magnitudes (of equal ones those at the lowest places) go to
// `kept`, the others to `dropped`.
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
  KthLargest largest_;
  int digit_ = 0;
  int64_t next_ = 0;
  int64_t equals_ = 0;  // still to be kept
};

// RegionSum: `to` = the sum of `terms`, all within `region`, added in their order.
//
// Goes through the region in windows, in which the sums lie densely and a bitmap tells where any are.
class RegionSum {
 public:
  void Begin(const std::vector<SparseEntries>& terms, Range region, SparseList& to);
  bool Advance(SparseLink& link);

 private:
  static constexpr int kWindow = 1 << 14;  // positions: their sums stay in the nearest cache

  void SkipEmpty();
  int64_t AddWindow();
  void EmptyWindow();

  const std::vector<SparseEntries>* terms_ = nullptr;
  std::vector<int64_t> next_;  // entry of each term
  SparseList* to_ = nullptr;
  int64_t window_ = 0;  // its first position
  std::vector<float> sums_ = std::vector<float>(kWindow);
  std::vector<uint64_t> touched_ = std::vector<uint64_t>(kWindow / 64);
};

// ThresholdCut: entries with magnitude bits of at least `least` go to `kept`.
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

// Difference: the entries of `mine` at positions that none of `parts` has go to `to`.  The parts ascend,
// one behind the other.
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
