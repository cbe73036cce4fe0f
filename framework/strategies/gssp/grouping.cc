#include "framework/strategies/gssp/grouping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "framework/core/check.h"

namespace dtrain::gssp {
namespace {

constexpr int64_t kNoServer = -1;

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
      sums_.push_back(sums_.back() + value);
      squares_.push_back(squares_.back() + value * value);
    }
  }
  int size() const { return static_cast<int>(order_.size()); }
  // Returns the cost of a group of workers [begin, end), in the order of speed.
  double Cost(int begin, int end) const {
    const double sum = sums_[end] - sums_[begin];
    return squares_[end] - squares_[begin] - sum * sum / (end - begin);
  }
  int worker(int place) const { return order_[place]; }

 private:
  std::vector<int> order_;
  std::vector<double> sums_ = {0}, squares_ = {0};
};

// Returns the smallest number of workers that a group may have.
int LeastSize(int workers, int groups) { return workers >= 2 * groups ? 2 : 1; }

// Returns the ends of the groups with the least total cost, by dynamic programming over (groups,
// workers), O(G W^2).
std::vector<int> BestEnds(const SortedTimes& times, int groups, int least) {
  const int workers = times.size();
  struct Best {
    double cost = std::numeric_limits<double>::infinity();
    int begin = 0;  // begin of the last group
  };
  std::vector<std::vector<Best>> best(groups + 1, std::vector<Best>(workers + 1));
  best[0][0].cost = 0;
  for (int group = 1; group <= groups; ++group) {
    for (int end = group * least; end <= workers; ++end) {
      for (int first = (group - 1) * least; first + least <= end; ++first) {
        const double all = best[group - 1][first].cost + times.Cost(first, end);
        if (all < best[group][end].cost) best[group][end] = {all, first};
      }
    }
  }
  std::vector<int> ends(groups);
  for (int group = groups, end = workers; group > 0; end = best[group--][end].begin) {
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
  return BestEnds(times, groups, LeastSize(times.size(), groups));
}

// Returns the largest value of slowest / fastest - 1 of any group.  `times` is indexed by worker.
double WidestSpread(const std::vector<double>& times, const SortedTimes& order,
                    const std::vector<int>& ends) {
  double widest = 0;
  for (int group = 0, place = 0; group < static_cast<int>(ends.size()); ++group) {
    double fastest = std::numeric_limits<double>::infinity(), slowest = 0;
    for (; place < ends[group]; ++place) {
      fastest = std::min(fastest, times[order.worker(place)]);
      slowest = std::max(slowest, times[order.worker(place)]);
    }
    widest = std::max(widest, slowest / fastest - 1);
  }
  return widest;
}

}  // namespace

std::vector<int> GroupBySpeed(const std::vector<double>& times, const GroupingRule& rule,
                              const std::vector<double>& compute) {
  const SortedTimes sorted(times);
  int groups = std::max(rule.groups, 1);
  DT_CHECK(groups <= sorted.size()) << groups << " groups of " << sorted.size() << " workers";
  std::vector<int> ends = Ends(sorted, groups, rule.equal_size);
  if (rule.groups == 0) {
    const int most = std::min(rule.groups_max, sorted.size());
    while (groups < most &&
           std::max(WidestSpread(times, sorted, ends),
                    compute.empty() ? 0 : WidestSpread(compute, sorted, ends)) > rule.spread) {
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

std::vector<int64_t> KeepServers(const std::vector<int>& group_of,
                                 const std::vector<int64_t>& server_of) {
  std::map<std::pair<int, int64_t>, int> shared;  // number of workers by (group, server)
  std::set<int64_t> free;
  for (size_t worker = 0; worker < group_of.size(); ++worker) {
    ++shared[{group_of[worker], server_of[worker]}];
    free.insert(server_of[worker]);
  }
  std::vector<std::tuple<int, int, int64_t>> most_first;
  for (const auto& [pair, count] : shared) most_first.push_back({-count, pair.first, pair.second});
  std::sort(most_first.begin(), most_first.end());
  const int groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  DT_CHECK(groups <= static_cast<int>(free.size())) << groups << " of " << free.size();
  std::vector<int64_t> server_of_group(groups, kNoServer);
  for (const auto& [count, group, server] : most_first) {
    if (server_of_group[group] != kNoServer || free.erase(server) == 0) continue;
    server_of_group[group] = server;
  }
  for (int64_t& server : server_of_group) {
    if (server == kNoServer) server = free.extract(free.begin()).value();
  }
  std::vector<int64_t> kept;
  for (const int group : group_of) kept.push_back(server_of_group[group]);
  return kept;
}

namespace {

// Groups has log(time) of each worker, by server.
using Groups = std::map<int64_t, std::vector<double>>;

double MeanOf(const std::vector<double>& logs) {
  return std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
}

bool LiesNearerToAnother(double log, int64_t server, const std::map<int64_t, double>& means) {
  const double own = std::abs(log - means.at(server));
  return std::any_of(means.begin(), means.end(),
                     [&](const auto& mean) { return std::abs(log - mean.second) < own; });
}

// True if a worker of another group is nearer to the other workers of `server` than this worker, by
// more than `spread`.
bool CouldBeReplaced(double log, int64_t server, const Groups& groups, double spread) {
  const std::vector<double>& own = groups.at(server);
  const auto size = static_cast<double>(own.size());
  const double rest = (MeanOf(own) * size - log) / (size - 1);
  const double allowed = std::abs(log - rest) - std::log1p(spread);
  for (const auto& [other, logs] : groups) {
    if (other == server) continue;
    for (const double theirs : logs) {
      if (std::abs(theirs - rest) < allowed) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<bool> Misplaced(const std::vector<double>& times, const std::vector<int64_t>& server_of,
                            const GroupingRule& rule) {
  Groups groups;
  for (size_t w = 0; w < times.size(); ++w) groups[server_of[w]].push_back(std::log(times[w]));
  std::map<int64_t, double> means;
  for (const auto& [server, logs] : groups) means[server] = MeanOf(logs);
  const auto workers = static_cast<int>(times.size()), count = static_cast<int>(groups.size());
  // With groups of equal size, no group can give a worker away.
  const size_t least = rule.equal_size ? times.size() : LeastSize(workers, count);
  std::vector<bool> misplaced;
  for (size_t w = 0; w < times.size(); ++w) {
    const double log = std::log(times[w]);
    const int64_t server = server_of[w];
    misplaced.push_back(
        LiesNearerToAnother(log, server, means) &&
        (groups[server].size() > least || CouldBeReplaced(log, server, groups, rule.spread)));
  }
  return misplaced;
}

}  // namespace dtrain::gssp
