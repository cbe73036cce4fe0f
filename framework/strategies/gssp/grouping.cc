#include "framework/strategies/gssp/grouping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/core/check.h"

namespace dtrain::gssp {
namespace {

// Sums over the workers sorted by time, so that any group's cost takes O(1).
class SortedTimes {
 public:
  explicit SortedTimes(const std::vector<double>& times) : order_(times.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return times[a] < times[b]; });
    for (const int worker : order_) {
      DT_CHECK(times[worker] > 0) << "worker " << worker << " takes " << times[worker];
      const double value = std::log(times[worker]);
      logs_.push_back(value);
      sums_.push_back(sums_.back() + value);
      squares_.push_back(squares_.back() + value * value);
    }
  }
  int size() const { return static_cast<int>(order_.size()); }
  // Of workers [begin, end).
  double Cost(int begin, int end) const {
    const double sum = sums_[end] - sums_[begin];
    return squares_[end] - squares_[begin] - sum * sum / (end - begin);
  }
  double Spread(int begin, int end) const { return std::exp(logs_[end - 1] - logs_[begin]) - 1; }
  int worker(int place) const { return order_[place]; }

 private:
  std::vector<int> order_;
  std::vector<double> logs_;
  std::vector<double> sums_ = {0}, squares_ = {0};
};

// Where each of `groups` ends; dynamic programming over (groups, workers), O(G W^2).
std::vector<int> BestEnds(const SortedTimes& times, int groups, int least) {
  const int workers = times.size();
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> cost(groups + 1, std::vector<double>(workers + 1, kNever));
  std::vector<std::vector<int>> begin(groups + 1, std::vector<int>(workers + 1, 0));
  cost[0][0] = 0;
  for (int group = 1; group <= groups; ++group) {
    for (int end = group * least; end <= workers; ++end) {
      for (int first = (group - 1) * least; first + least <= end; ++first) {
        if (cost[group - 1][first] == kNever) continue;
        const double all = cost[group - 1][first] + times.Cost(first, end);
        if (all >= cost[group][end]) continue;
        cost[group][end] = all;
        begin[group][end] = first;
      }
    }
  }
  std::vector<int> ends(groups);
  for (int group = groups, end = workers; group > 0; end = begin[group--][end]) {
    ends[group - 1] = end;
  }
  return ends;
}

std::vector<int> EqualEnds(int workers, int groups) {
  std::vector<int> ends;
  for (int group = 1; group <= groups; ++group) ends.push_back(workers * group / groups);
  return ends;
}

std::vector<int> Ends(const SortedTimes& times, int groups, bool equal_size) {
  if (equal_size) return EqualEnds(times.size(), groups);
  return BestEnds(times, groups, times.size() >= 2 * groups ? 2 : 1);
}

double WidestSpread(const SortedTimes& times, const std::vector<int>& ends) {
  double widest = 0;
  for (size_t group = 0; group < ends.size(); ++group) {
    const int begin = group == 0 ? 0 : ends[group - 1];
    widest = std::max(widest, times.Spread(begin, ends[group]));
  }
  return widest;
}

}  // namespace

std::vector<int> GroupBySpeed(const std::vector<double>& times, const GroupingRule& rule) {
  const SortedTimes sorted(times);
  int groups = rule.groups > 0 ? rule.groups : 1;
  DT_CHECK(groups <= sorted.size()) << groups << " groups of " << sorted.size() << " workers";
  std::vector<int> ends = Ends(sorted, groups, rule.equal_size);
  if (rule.groups == 0) {
    const int most = std::min(rule.groups_max, sorted.size());
    while (groups < most && WidestSpread(sorted, ends) > rule.spread) {
      ends = Ends(sorted, ++groups, rule.equal_size);
    }
  }
  std::vector<int> group_of(times.size());
  for (int place = 0, group = 0; place < sorted.size(); ++place) {
    while (place == ends[group]) ++group;
    group_of[sorted.worker(place)] = group;
  }
  return group_of;
}

std::vector<bool> Misplaced(const std::vector<double>& times, const std::vector<int>& group_of) {
  const int groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  std::vector<double> mean(groups, 0), count(groups, 0);
  for (size_t worker = 0; worker < times.size(); ++worker) {
    mean[group_of[worker]] += std::log(times[worker]);
    ++count[group_of[worker]];
  }
  for (int group = 0; group < groups; ++group) mean[group] /= std::max(count[group], 1.0);
  std::vector<bool> misplaced;
  for (size_t worker = 0; worker < times.size(); ++worker) {
    const double own = std::abs(std::log(times[worker]) - mean[group_of[worker]]);
    bool nearer = false;
    for (int group = 0; group < groups; ++group) {
      nearer |= count[group] > 0 && std::abs(std::log(times[worker]) - mean[group]) < own;
    }
    misplaced.push_back(nearer);
  }
  return misplaced;
}

}  // namespace dtrain::gssp
