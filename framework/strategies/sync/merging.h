// Merging: which neighbouring gradients one all-reduce carries, and when a step then ends.
//
// The model of MG-WFBP (Shi, Chu and Li, "MG-WFBP: Efficient Data Communication for Distributed
// Synchronous SGD Algorithms", INFOCOM 2019, arXiv 1811.11141; TPDS 32(8), 2021): gradients become
// ready one after the other in the backward pass; there is one channel, which serves one group at
// a time, in that order; a group starts when its last gradient is ready and the channel is free.
// Merging saves start-ups of the network and may cost overlap with the backward pass.  It never
// changes what is computed.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {

// Gradients in the order in which the backward pass finishes them.
struct ReadyGradients {
  std::vector<int64_t> bytes;  // of each
  std::vector<double> ready;   // seconds since the step began; not descending

  size_t size() const { return bytes.size(); }
};

// Ends of the groups: group i holds the gradients from the end of group i-1 up to ends[i].
using MergePlan = std::vector<size_t>;

// When groups may start.
enum class MergeStart {
  kReady,          // as soon as they are complete
  kAfterBackward,  // when the last gradient is ready (naive S-SGD)
};

// Every gradient by itself (WFBP).
MergePlan MergeNone(const ReadyGradients& gradients);
// All in one, without overlap (SyncEASGD's).
MergePlan MergeAll(const ReadyGradients& gradients);
// a of the paper, the start-up that merging saves: the intercept, not below 0, of the straight line
// through T(M) at the authors' sizes, 32 KB to 2 MB in steps of 32 KB, by least squares.  T of a small
// vector is not it: ours take fewer rounds.
double StartUp(const ReduceTime& takes);
// The rule of the paper: a gradient waits for the next one if that is ready before this group could
// start plus one StartUp.  It looks at one boundary at a time and is not optimal: a chain of
// merges can hold the channel back (up to 1.3 times the best step on random instances).
MergePlan MergeByRule(const ReadyGradients& gradients, const ReduceTime& takes);
// The best of all plans, for any T(M): f[j] = min over i < j of max(f[i], ready[j]) + T(bytes of
// i..j), by dynamic programming, O(n^2).  Of times that are equal but for rounding it takes, for
// each j, the one with fewer groups.
MergePlan MergeBest(const ReadyGradients& gradients, const ReduceTime& takes);

// What one group carries, and when it is on its way: seconds since the step began.
struct GroupSending {
  size_t gradients = 0;
  int64_t bytes = 0;
  double ready = 0, begin = 0, end = 0;
};
// Of each group of a plan, one after the other.
std::vector<GroupSending> SendingsOf(const ReadyGradients& gradients, const ReduceTime& takes,
                                     const MergePlan& plan, MergeStart start = MergeStart::kReady);

// When the last group has arrived; 0 without gradients.
double StepEnd(const ReadyGradients& gradients, const ReduceTime& takes, const MergePlan& plan,
               MergeStart start = MergeStart::kReady);

// The gradients of a model, those without elements left out; all ready at once where no times are
// known.
ReadyGradients ReadyOf(const GradientPieces& pieces);
// A plan for them as ranges of the gradient arena.
std::vector<Range> BucketsOf(const GradientPieces& pieces, const MergePlan& plan);

// Of these buckets, where the pieces' times are known: when each is on its way, and StepEnd.
std::vector<GroupSending> SendingsOf(const GradientPieces& pieces,
                                     const std::vector<Range>& buckets,
                                     MergeStart start = MergeStart::kReady);
double PredictStep(const GradientPieces& pieces, const std::vector<Range>& buckets,
                   MergeStart start = MergeStart::kReady);

}  // namespace dtrain
