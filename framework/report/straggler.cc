#include "framework/report/straggler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/text.h"
#include "framework/results/rank_times.h"
#include "framework/results/run_files.h"

namespace dtrain {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

struct Worker {
  int64_t rank = 0;
  std::string node;
  double seconds = 0;  // computing of a step
};

struct Host {
  size_t ranks = 0;   // servers, too
  bool known = true;  // the CPUs of all its ranks are known
  std::set<int> cpus;
  bool crowded() const { return known && cpus.size() < ranks; }
};

struct Workers {
  std::vector<Worker> all;  // slowest first
  std::map<std::string, Host> hosts;
};

std::string NodeOf(const json& entry) {
  const auto node = entry.find("node");
  return node == entry.end() ? "" : node->is_string() ? node->get<std::string>() : node->dump();
}

Workers WorkersIn(const ordered_json& entries) {
  Workers workers;
  for (const json entry : entries) {
    if (!entry.is_object()) continue;
    Host& host = workers.hosts[NodeOf(entry)];
    ++host.ranks;
    const std::vector<int> cpus = CpusOfList(TextIn(entry, "cpus"));
    host.known &= !cpus.empty();
    host.cpus.insert(cpus.begin(), cpus.end());
    const auto rank = NumberIn(entry, "rank"), compute = NumberIn(entry, "compute_seconds"),
               steps = NumberIn(entry, "own_steps");
    if (!rank || !compute || !steps || !(*steps > 0) || std::abs(*rank) > 1e6) continue;
    workers.all.push_back({static_cast<int64_t>(*rank), NodeOf(entry), *compute / *steps});
  }
  std::ranges::stable_sort(workers.all, std::greater<>(), &Worker::seconds);
  return workers;
}

double MedianOf(const std::vector<Worker>& sorted) {
  const size_t n = sorted.size();
  return (sorted[(n - 1) / 2].seconds + sorted[n / 2].seconds) / 2;
}

}  // namespace

ordered_json StragglerOf(const ordered_json& entries) {
  const Workers workers = WorkersIn(entries);
  const std::vector<Worker>& all = workers.all;
  if (all.size() < 2) return nullptr;
  const double median = MedianOf(all);
  const auto slow = std::ranges::count_if(
      all, [&](const Worker& worker) { return worker.seconds >= kClearlySlower * median; });
  const auto none = [](const std::string& why) { return ordered_json{{"none", why}}; };
  if (slow == 0 || median <= 0) {
    return none("No worker stands out: no worker's step takes 25 % longer than the median.");
  }
  if (4 * slow > std::ssize(all)) {
    return none(fmt::format(
        "No worker is called a straggler: the steps of {} of {} workers take 25 % longer than the "
        "median, and stragglers are at most a quarter{}.",
        slow, all.size(), all.size() < 4 ? ", so of four workers or more" : ""));
  }
  const Host& host = workers.hosts.at(all[0].node);
  if (host.crowded()) {
    return none(fmt::format("No worker is called a straggler: on {} {} ranks take turns on {}.",
                            all[0].node, host.ranks, Counted(std::ssize(host.cpus), "core")));
  }
  return {{"rank", all[0].rank},
          {"compute_seconds", all[0].seconds},
          {"median_seconds", median},
          {"factor", all[0].seconds / median}};
}

}  // namespace dtrain
