#include "framework/results/rank_times.h"

#include "framework/core/printable.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace dtrain {
namespace {

using nlohmann::ordered_json;

// Rounds to microseconds, which keeps the file short.
double Rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

StepWindow Joined(const StepWindow& first, const StepWindow& second) {
  return {second.at_seconds, first.steps + second.steps,
          first.compute_seconds + second.compute_seconds, first.wait_seconds + second.wait_seconds,
          std::max(first.longest_seconds, second.longest_seconds)};
}

template <class Field>
ordered_json ListOf(const std::vector<StepWindow>& windows, Field field) {
  ordered_json list = ordered_json::array();
  for (const StepWindow& window : windows) list.push_back(field(window));
  return list;
}

}  // namespace

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < cpus.size(); begin = end) {
    end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[begin]);
    if (end - begin > 1) text += '-' + std::to_string(cpus[end - 1]);
  }
  return text;
}

std::vector<int> CpusOfList(const std::string& text) {
  constexpr int kMost = 1 << 16;
  std::vector<int> cpus;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    const int read = std::sscanf(range.c_str(), "%5d-%5d", &first, &last);
    if (read < 2) last = first;
    if (read < 1 || first < 0 || last < first || last >= kMost) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

void StepWindows::Add(double at_seconds, double compute_seconds, double wait_seconds) {
  const StepWindow step{at_seconds, 1, compute_seconds, wait_seconds,
                        compute_seconds + wait_seconds};
  if (!windows_.empty() && windows_.back().steps < steps_) {
    windows_.back() = Joined(windows_.back(), step);
    return;
  }
  if (windows_.size() == kMost) HalveThem();
  windows_.push_back(step);
}

void StepWindows::HalveThem() {
  static_assert(kMost % 2 == 0);
  for (size_t i = 0; i < kMost / 2; ++i) {
    windows_[i] = Joined(windows_[2 * i], windows_[2 * i + 1]);
  }
  windows_.resize(kMost / 2);
  steps_ *= 2;
}

std::vector<StepWindow> StepWindows::Take() {
  steps_ = 1;
  return std::exchange(windows_, {});
}

void RankTimesWriter::Write(int64_t step, const RankTimes& times) {
  ordered_json line = {
      {"schema", kRanksSchema}, {"step", step}, {"rank", times.rank}, {"role", times.role}};
  line["node"] = times.node;
  const std::vector<StepWindow>& all = times.windows;
  line["seconds"] = ListOf(
      all, [&](const StepWindow& window) { return Rounded(seconds_before_ + window.at_seconds); });
  line["own_steps"] = ListOf(all, [](const StepWindow& window) { return window.steps; });
  const std::pair<const char*, double StepWindow::*> sums[] = {
      {"compute_seconds", &StepWindow::compute_seconds},
      {"wait_seconds", &StepWindow::wait_seconds},
      {"longest_seconds", &StepWindow::longest_seconds}};
  for (const auto& [name, sum] : sums) {
    line[name] = ListOf(all, [field = sum](const StepWindow& w) { return Rounded(w.*field); });
  }
  line["bytes_sent"] = times.traffic.bytes_sent;
  line["bytes_received"] = times.traffic.bytes_received;
  line["messages"] = times.traffic.messages;
  if (!times.staleness.empty()) line["staleness"] = times.staleness;
  if (!times.cpus.empty()) line["cpus"] = times.cpus;
  lines_.Write(JsonText(line));
}

}  // namespace dtrain
