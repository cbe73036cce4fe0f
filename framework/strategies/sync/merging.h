// Merging: groups neighbouring gradients into one all-reduce each, and predicts the end of the
// step.
//
// It uses the model of MG-WFBP (Shi, Chu and Li, "MG-WFBP: Efficient Data Communication for
// Distributed Synchronous SGD Algorithms", INFOCOM 2019, arXiv 1811.11141; TPDS 32(8), 2021).
// Gradients become ready one after the other in the backward pass.  There is one channel, which
// serves one group at a time, in that order.  A group starts when its last gradient is ready and
// the channel is free.  Merging saves start-up times of the network and may lose overlap with the
// backward pass.  It never changes the result.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {

// Describes the gradients in the order in which the backward pass finishes them.
struct ReadyGradients {
  std::vector<int64_t> bytes;
  std::vector<double> ready;  // seconds since the step began; not descending

  size_t size() const { return bytes.size(); }
};

// Ends of the groups: group i has the gradients from the end of group i-1 up to ends[i].
using MergePlan = std::vector<size_t>;

// Groups may start at one of these times.
enum class MergeStart {
  kReady,          // as soon as they are complete
  kAfterBackward,  // when the last gradient is ready (naive S-SGD)
};

// Makes a group of every gradient (WFBP).
MergePlan MergeNone(const ReadyGradients& gradients);
// Makes one group of all gradients, without overlap (as SyncEASGD).
MergePlan MergeAll(const ReadyGradients& gradients);
// Returns the start-up time that merging saves, called a in the paper: the intercept, at least 0,
// of a least-squares line through T(M) at the authors' sizes, 32 KB to 2 MB in steps of 32 KB.  T
// of a very small vector is not used for it, since our collectives need fewer rounds for such
// vectors.
double StartUp(const ReduceTime& takes);
// Merges by the rule of the paper: a gradient waits for the next one if that is ready earlier than
// StartUp after the time at which this group could start and, as in the authors' program, before
// its all-reduce would end.  The rule looks at one pair of neighbours at a time and is not optimal:
// a chain of merges can delay the channel (up to 1.3 times the best step on random instances).
MergePlan MergeByRule(const ReadyGradients& gradients, const ReduceTime& takes);
// Returns the best of all plans, for any T(M): f[j] = min over i < j of max(f[i], ready[j]) +
// T(bytes of i..j), by dynamic programming, O(n^2).  If times are equal except for rounding it
// takes, for each j, the plan with fewer groups.
MergePlan MergeBest(const ReadyGradients& gradients, const ReduceTime& takes);

// One group: the number and bytes of its gradients, and the times at which it is ready, starts and
// ends, in seconds since the step began.
struct GroupSending {
  size_t gradients = 0;
  int64_t bytes = 0;
  double ready = 0, begin = 0, end = 0;
};
// Returns the groups of a plan, in order.
std::vector<GroupSending> SendingsOf(const ReadyGradients& gradients, const ReduceTime& takes,
                                     const MergePlan& plan, MergeStart start = MergeStart::kReady);

// Returns the end of the last group; 0 without gradients.
double StepEnd(const ReadyGradients& gradients, const ReduceTime& takes, const MergePlan& plan,
               MergeStart start = MergeStart::kReady);

// Returns the gradients of a model without those that have no elements.  If the layers' gradients
// are not timed, all are ready at time 0.
ReadyGradients ReadyOf(const LayerGradients& layer_gradients);
// Returns the groups of a plan for them as ranges of the gradient arena.
std::vector<Range> BucketsOf(const LayerGradients& layer_gradients, const MergePlan& plan);

// Compute SendingsOf and StepEnd for these buckets.  `layer_gradients` must be timed.
std::vector<GroupSending> SendingsOf(const LayerGradients& layer_gradients,
                                     const std::vector<Range>& buckets,
                                     MergeStart start = MergeStart::kReady);
double PredictStep(const LayerGradients& layer_gradients, const std::vector<Range>& buckets,
                   MergeStart start = MergeStart::kReady);

}  // namespace dtrain
