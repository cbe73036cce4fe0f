#include "framework/strategies/ps/clock_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::ps {

ClockTable::ClockTable(int workers) : finished_(workers, 0) { Recount(); }

bool ClockTable::Finish(int worker) {
  DT_CHECK(!Removed(worker)) << "worker " << worker << " was removed";
  const size_t lead = Lead(worker);
  ++finished_[worker];
  if (lead + 1 == leads_.size()) leads_.push_back(0);
  --leads_[lead];
  ++leads_[lead + 1];
  return Advance();
}

bool ClockTable::Remove(int worker) {
  DT_CHECK(!Removed(worker)) << "worker " << worker << " was removed before";
  --leads_[Lead(worker)];
  finished_[worker] = kRemoved;
  const bool moved = Advance();
  while (!leads_.empty() && leads_.back() == 0) leads_.pop_back();
  return moved;
}

void ClockTable::Add(int worker) {
  DT_CHECK(Removed(worker)) << "worker " << worker << " is there already";
  finished_[worker] = minimum_;
  if (leads_.empty()) leads_.push_back(0);
  ++leads_.front();
}

// Each pop undoes a push of Finish, so the amortised time is O(1).
bool ClockTable::Advance() {
  const int64_t before = minimum_;
  while (leads_.size() > 1 && leads_.front() == 0) {
    leads_.pop_front();
    ++minimum_;
  }
  return minimum_ != before;
}

void ClockTable::Visit(StateVisitor& visitor) {
  VisitFixed(visitor, "finished", finished_);
  Recount();
}

void ClockTable::Recount() {
  leads_.clear();
  const std::vector<int> slowest = SlowestFirst();
  if (slowest.empty()) return;
  minimum_ = Finished(slowest.front());
  leads_.resize(Lead(slowest.back()) + 1, 0);
  for (const int worker : slowest) ++leads_[Lead(worker)];
}

std::vector<int> ClockTable::SlowestFirst() const {
  std::vector<int> workers;
  for (int worker = 0; worker < this->workers(); ++worker) {
    if (!Removed(worker)) workers.push_back(worker);
  }
  std::stable_sort(workers.begin(), workers.end(),
                   [this](int a, int b) { return Finished(a) < Finished(b); });
  return workers;
}

std::string ClockTable::Describe() const {
  constexpr int kAllShown = 8;
  if (workers() > kAllShown) return DescribeSlowest();
  std::vector<std::string> clocks;
  for (int worker = 0; worker < workers(); ++worker) {
    clocks.push_back(Removed(worker) ? "-" : std::to_string(Finished(worker)));
  }
  return Join(clocks, " ");
}

std::string ClockTable::DescribeSlowest() const {
  constexpr size_t kShown = 3;
  const std::vector<int> slowest = SlowestFirst();
  if (slowest.empty()) return "-";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, slowest.size()); ++i) {
    shown.push_back(fmt::format("{} ({})", slowest[i], Finished(slowest[i])));
  }
  return fmt::format("{}..{}, slowest {}", Minimum(), Finished(slowest.back()), Join(shown));
}

}  // namespace dtrain::ps
