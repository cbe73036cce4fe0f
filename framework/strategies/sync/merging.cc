#include "framework/strategies/sync/merging.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dtrain {

ReadyGradients ReadyOf(const GradientPieces& pieces) {
  ReadyGradients gradients;
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    if (pieces.ranges[i].empty()) continue;
    gradients.bytes.push_back(pieces.ranges[i].size() * static_cast<int64_t>(sizeof(float)));
    gradients.ready.push_back(pieces.timed() ? pieces.ready[i] : 0);
  }
  return gradients;
}

std::vector<Range> BucketsOf(const GradientPieces& pieces, const MergePlan& plan) {
  std::vector<Range> buckets;
  size_t gradient = 0;
  for (const Range& piece : pieces.ranges) {
    if (piece.empty()) continue;
    const bool joins = gradient > 0 && gradient < plan[buckets.size() - 1];
    if (joins) {
      buckets.back().end = piece.end;
    } else {
      buckets.push_back(piece);
    }
    ++gradient;
  }
  return buckets;
}

std::vector<GroupSending> SendingsOf(const GradientPieces& pieces,
                                     const std::vector<Range>& buckets, MergeStart start) {
  MergePlan plan;
  size_t gradient = 0;
  for (const Range& piece : pieces.ranges) {
    if (piece.empty()) continue;
    ++gradient;
    if (plan.size() < buckets.size() && piece.end >= buckets[plan.size()].end)
      plan.push_back(gradient);
  }
  return SendingsOf(ReadyOf(pieces), pieces.reduce_seconds, plan, start);
}

double PredictStep(const GradientPieces& pieces, const std::vector<Range>& buckets,
                   MergeStart start) {
  const std::vector<GroupSending> sendings = SendingsOf(pieces, buckets, start);
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
    const double off = i - (kSizes + 1) / 2.0;  // from the mean size, in steps
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
  double free = 0;  // when the channel is
  for (size_t i = 0; i < gradients.size(); ++i) {
    bytes += gradients.bytes[i];
    const double start = std::max(free, gradients.ready[i]);
    if (i + 1 < gradients.size() && gradients.ready[i + 1] < start + start_up) continue;
    plan.push_back(i + 1);
    free = start + takes(bytes);
    bytes = 0;
  }
  return plan;
}

// Plans that keep the channel busy end at the same time however they are cut, but for rounding,
// which must not choose between them: not on another rank, nor in another unit.
constexpr double kEqual = 1e-12;  // relative

MergePlan MergeBest(const ReadyGradients& gradients, const ReduceTime& takes) {
  // The best plan for the first j gradients: when it ends, how many groups, where the last begins.
  struct Best {
    double end = std::numeric_limits<double>::infinity();
    size_t groups = 0;
    size_t begin = 0;
  };
  const size_t count = gradients.size();
  std::vector<Best> best(count + 1);
  best[0].end = 0;
  for (size_t j = 1; j <= count; ++j) {
    // Later groups end no earlier when an earlier one ends later, so the best prefix is enough.
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
  double free = 0;  // when the channel is
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
