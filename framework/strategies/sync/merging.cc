#include "framework/strategies/sync/merging.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dtrain {

ReadyGradients ReadyOf(const LayerGradients& layer_gradients) {
  ReadyGradients gradients;
  for (size_t i = 0; i < layer_gradients.ranges.size(); ++i) {
    if (layer_gradients.ranges[i].empty()) continue;
    gradients.bytes.push_back(layer_gradients.ranges[i].size() *
                              static_cast<int64_t>(sizeof(float)));
    gradients.ready.push_back(layer_gradients.timed() ? layer_gradients.ready[i] : 0);
  }
  return gradients;
}

std::vector<Range> BucketsOf(const LayerGradients& layer_gradients, const MergePlan& plan) {
  std::vector<Range> buckets;
  size_t count = 0;
  for (const Range& gradient : layer_gradients.ranges) {
    if (gradient.empty()) continue;
    const bool joins = count > 0 && count < plan[buckets.size() - 1];
    if (joins) {
      buckets.back().end = gradient.end;
    } else {
      buckets.push_back(gradient);
    }
    ++count;
  }
  return buckets;
}

std::vector<GroupSending> SendingsOf(const LayerGradients& layer_gradients,
                                     const std::vector<Range>& buckets, MergeStart start) {
  MergePlan plan;
  size_t count = 0;
  for (const Range& gradient : layer_gradients.ranges) {
    if (gradient.empty()) continue;
    ++count;
    if (plan.size() < buckets.size() && gradient.end >= buckets[plan.size()].end)
      plan.push_back(count);
  }
  return SendingsOf(ReadyOf(layer_gradients), layer_gradients.reduce_seconds, plan, start);
}

double PredictStep(const LayerGradients& layer_gradients, const std::vector<Range>& buckets,
                   MergeStart start) {
  const std::vector<GroupSending> sendings = SendingsOf(layer_gradients, buckets, start);
  return sendings.empty() ? 0 : sendings.back().end;
}

MergePlan MergeNone(const ReadyGradients& gradients) {
  MergePlan plan(gradients.size());
  std::iota(plan.begin(), plan.end(), 1);
  return plan;
}

MergePlan MergeAll(const ReadyGradients& gradients) {
  return gradients.size() == 0 ? MergePlan{} : MergePlan{gradients.size()};
}

double StartUp(const ReduceTime& takes) {
  constexpr int64_t kStepBytes = 32 << 10;
  constexpr int kSizes = 63;
  double mean_seconds = 0, product = 0, square = 0;
  for (int i = 1; i <= kSizes; ++i) {
    const double seconds = takes(i * kStepBytes);
    const double off = i - (kSizes + 1) / 2.0;  // distance from the mean size, in steps
    mean_seconds += seconds / kSizes;
    product += off * seconds;
    square += off * off;
  }
  return std::max(0.0, mean_seconds - (kSizes + 1) / 2.0 * product / square);
}

MergePlan MergeByRule(const ReadyGradients& gradients, const ReduceTime& takes) {
  const double start_up = StartUp(takes);
  MergePlan plan;
  int64_t bytes = 0;
  double free = 0;  // time at which the channel is free
  for (size_t i = 0; i < gradients.size(); ++i) {
    bytes += gradients.bytes[i];
    const double start = std::max(free, gradients.ready[i]);
    const double end = start + takes(bytes);
    if (i + 1 < gradients.size() && gradients.ready[i + 1] < std::min(end, start + start_up))
      continue;
    plan.push_back(i + 1);
    free = end;
    bytes = 0;
  }
  return plan;
}

// Plans that keep the channel busy end at the same time, however they are split, except for
// rounding errors.  These must not decide between the plans, or ranks could choose differently.
constexpr double kEqual = 1e-12;  // relative

MergePlan MergeBest(const ReadyGradients& gradients, const ReduceTime& takes) {
  // The best plan for the first j gradients: its end, its number of groups, and the begin of its
  // last group.
  struct Best {
    double end = std::numeric_limits<double>::infinity();
    size_t groups = 0;
    size_t begin = 0;
  };
  const size_t count = gradients.size();
  std::vector<Best> best(count + 1);
  best[0].end = 0;
  for (size_t j = 1; j <= count; ++j) {
    // A prefix that ends later cannot make later groups end earlier, so only the best prefix
    // counts.
    int64_t bytes = std::accumulate(gradients.bytes.begin(),
                                    gradients.bytes.begin() + static_cast<int64_t>(j), int64_t{0});
    for (size_t i = 0; i < j; bytes -= gradients.bytes[i++]) {
      const double end = std::max(best[i].end, gradients.ready[j - 1]) + takes(bytes);
      const size_t groups = best[i].groups + 1;
      const double margin = kEqual * end;
      if (end < best[j].end - margin || (end <= best[j].end + margin && groups < best[j].groups)) {
        best[j] = {end, groups, i};
      }
    }
  }
  MergePlan plan;
  for (size_t j = count; j > 0; j = best[j].begin) plan.push_back(j);
  std::reverse(plan.begin(), plan.end());
  return plan;
}

std::vector<GroupSending> SendingsOf(const ReadyGradients& gradients, const ReduceTime& takes,
                                     const MergePlan& plan, MergeStart start) {
  std::vector<GroupSending> sendings;
  double free = 0;  // time at which the channel is free
  size_t begin = 0;
  for (const size_t stop : plan) {
    GroupSending sending{.gradients = stop - begin};
    sending.bytes =
        std::accumulate(gradients.bytes.begin() + static_cast<int64_t>(begin),
                        gradients.bytes.begin() + static_cast<int64_t>(stop), int64_t{0});
    sending.ready =
        start == MergeStart::kReady ? gradients.ready[stop - 1] : gradients.ready.back();
    sending.begin = std::max(free, sending.ready);
    free = sending.end = sending.begin + takes(sending.bytes);
    sendings.push_back(sending);
    begin = stop;
  }
  return sendings;
}

double StepEnd(const ReadyGradients& gradients, const ReduceTime& takes, const MergePlan& plan,
               MergeStart start) {
  const std::vector<GroupSending> sendings = SendingsOf(gradients, takes, plan, start);
  return sendings.empty() ? 0 : sendings.back().end;
}

}  // namespace dtrain
