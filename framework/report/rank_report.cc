#include "framework/report/rank_report.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "framework/report/series.h"
#include "framework/results/run_files.h"

namespace dtrain {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kShownAtEnds = 16;     // number of slowest, and of fastest, workers shown
constexpr size_t kPointsOfAll = 6'000;  // total of all workers' series
constexpr size_t kTrafficPoints = 300;

struct Window {
  double at = 0, steps = 0, compute = 0, wait = 0, longest = 0;
};

struct RankSeen {
  std::string role, node, cpus;
  std::vector<Window> windows;
  double steps = 0, compute = 0, wait = 0, longest = 0;
  double sent = 0, received = 0, messages = 0;

  double MeanCompute() const { return compute / steps; }  // of a worker: it has steps
};

struct BoundarySeen {
  double at = 0, sent = 0, received = 0;
};

class Ranks {
 public:
  void Add(const json& line);
  void Describe(ordered_json& report) const;

 private:
  std::vector<int64_t> Shown() const;  // ranks shown, longest mean compute time first
  ordered_json Traffic() const;

  std::map<int64_t, RankSeen> ranks_;
  std::map<int64_t, BoundarySeen> boundaries_;  // by step
  std::vector<int64_t> staleness_;
};

std::vector<Window> WindowsOf(const json& line) {
  const auto at = NumbersIn(line, "seconds"), steps = NumbersIn(line, "own_steps"),
             compute = NumbersIn(line, "compute_seconds"), wait = NumbersIn(line, "wait_seconds"),
             longest = NumbersIn(line, "longest_seconds");
  std::vector<Window> windows;
  const size_t count =
      std::min({at.size(), steps.size(), compute.size(), wait.size(), longest.size()});
  for (size_t i = 0; i < count; ++i) {
    if (steps[i] >= 1) windows.push_back({at[i], steps[i], compute[i], wait[i], longest[i]});
  }
  return windows;
}

void Ranks::Add(const json& line) {
  const auto rank = NumberIn(line, "rank"), step = NumberIn(line, "step");
  if (!rank || !step || std::abs(*rank) > 1e6 || std::abs(*step) > 1e15) return;
  RankSeen& seen = ranks_[static_cast<int64_t>(*rank)];
  BoundarySeen& boundary = boundaries_[static_cast<int64_t>(*step)];
  seen.role = TextIn(line, "role");
  seen.node = TextIn(line, "node");
  seen.cpus = TextIn(line, "cpus");
  for (const Window& window : WindowsOf(line)) {
    seen.windows.push_back(window);
    seen.steps += window.steps;
    seen.compute += window.compute;
    seen.wait += window.wait;
    seen.longest = std::max(seen.longest, window.longest);
    boundary.at = std::max(boundary.at, window.at);
  }
  const double sent = NumberIn(line, "bytes_sent").value_or(0);
  const double received = NumberIn(line, "bytes_received").value_or(0);
  seen.sent += sent;
  seen.received += received;
  seen.messages += NumberIn(line, "messages").value_or(0);
  boundary.sent += sent;
  boundary.received += received;
  const std::vector<double> staleness = NumbersIn(line, "staleness");
  staleness_.resize(std::max(staleness_.size(), staleness.size()));
  for (size_t s = 0; s < staleness.size(); ++s) {
    staleness_[s] += static_cast<int64_t>(staleness[s]);
  }
}

std::vector<int64_t> Ranks::Shown() const {
  std::vector<int64_t> workers;
  for (const auto& [rank, seen] : ranks_) {
    if (seen.steps > 0) workers.push_back(rank);
  }
  std::stable_sort(workers.begin(), workers.end(), [this](int64_t a, int64_t b) {
    return ranks_.at(a).MeanCompute() > ranks_.at(b).MeanCompute();
  });
  if (workers.size() > 2 * kShownAtEnds) {
    workers.erase(workers.begin() + kShownAtEnds, workers.end() - kShownAtEnds);
  }
  return workers;
}

// Joins neighbouring windows.  The windows of a rank differ in their numbers of steps, so sums are divided by the
// joined number of steps.
ordered_json TimesOf(const std::vector<Window>& windows, size_t most) {
  const size_t joined = std::max<size_t>((windows.size() + most - 1) / most, 1);
  Series series({{"seconds", Series::Join::kLast}, {"compute_ms"}, {"wait_ms"}, {"longest_ms"}});
  for (size_t begin = 0; begin < windows.size(); begin += joined) {
    Window sum;
    for (size_t i = begin; i < std::min(begin + joined, windows.size()); ++i) {
      sum.at = Shortened(windows[i].at);
      sum.steps += windows[i].steps;
      sum.compute += windows[i].compute;
      sum.wait += windows[i].wait;
      sum.longest = std::max(sum.longest, windows[i].longest);
    }
    series.Add(
        {sum.at, 1e3 * sum.compute / sum.steps, 1e3 * sum.wait / sum.steps, 1e3 * sum.longest});
  }
  return series.Json(most);
}

ordered_json Ranks::Traffic() const {
  Series series({{"seconds", Series::Join::kLast},
                 {"sent", Series::Join::kLast},
                 {"received", Series::Join::kLast}});
  BoundarySeen all;
  series.Add({0, 0, 0});
  for (const auto& [step, boundary] : boundaries_) {
    all.at = std::max(all.at, boundary.at);
    all.sent += boundary.sent;
    all.received += boundary.received;
    series.Add({Shortened(all.at), all.sent, all.received});
  }
  return series.Json(kTrafficPoints);
}

void Ranks::Describe(ordered_json& report) const {
  if (ranks_.empty()) return;
  const std::vector<int64_t> shown = Shown();
  const size_t points =
      std::clamp<size_t>(kPointsOfAll / std::max<size_t>(shown.size(), 1), 60, 300);
  for (const auto& [rank, seen] : ranks_) {
    ordered_json one = {{"rank", rank},
                        {"role", seen.role},
                        {"node", seen.node},
                        {"own_steps", seen.steps},
                        {"compute_seconds", Shortened(seen.compute)},
                        {"wait_seconds", Shortened(seen.wait)},
                        {"longest_seconds", Shortened(seen.longest)},
                        {"bytes_sent", seen.sent},
                        {"bytes_received", seen.received},
                        {"messages", seen.messages}};
    if (!seen.cpus.empty()) one["cpus"] = seen.cpus;
    if (std::find(shown.begin(), shown.end(), rank) != shown.end()) {
      one["times"] = TimesOf(seen.windows, points);
    }
    report["ranks"].push_back(std::move(one));
  }
  report["traffic"] = Traffic();
  if (!staleness_.empty()) report["staleness"] = staleness_;
}

}  // namespace

int64_t DescribeRanks(const std::filesystem::path& ranks_file, ordered_json& report) {
  Ranks ranks;
  const int64_t damaged = ForEachLine(ranks_file, [&](const json& line) { ranks.Add(line); });
  ranks.Describe(report);
  return damaged;
}

}  // namespace dtrain
