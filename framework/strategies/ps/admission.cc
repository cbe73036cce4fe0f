#include "framework/strategies/ps/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/strategies/visit.h"

namespace dtrain::ps {

std::vector<int> Admission::Request(int worker) {
  DT_CHECK(waiting_[worker] == 0) << "worker " << worker << " asks twice; " << Describe();
  waiting_[worker] = true;
  return Grant(worker, worker + 1);
}

std::vector<int> Admission::Finish(int worker, bool wants_next) {
  DT_CHECK(waiting_[worker] == 0) << "worker " << worker
                                  << " finishes a step that it may not start; " << Describe();
  const bool minimum_moved = clocks_.Finish(worker);
  waiting_[worker] = wants_next;
  return minimum_moved ? Grant(0, clocks_.workers()) : Grant(worker, worker + 1);
}

std::vector<int> Admission::Leave(int worker) {
  waiting_[worker] = false;
  return clocks_.Remove(worker) ? Grant(0, clocks_.workers()) : std::vector<int>();
}

void Admission::LetGo(int worker) {
  DT_CHECK(Waits(worker)) << "worker " << worker << " does not wait; " << Describe();
  waiting_[worker] = false;
  lead_max_ = std::max(lead_max_, clocks_.Lead(worker));
}

// Grants the waiting requests of workers [begin, end) that are within the bound, and returns these
// workers.
std::vector<int> Admission::Grant(int begin, int end) {
  std::vector<int> granted;
  for (int worker = begin; worker < end; ++worker) {
    const int64_t lead = clocks_.Lead(worker);
    if (waiting_[worker] == 0 || lead > bound_) continue;
    waiting_[worker] = false;
    lead_max_ = std::max(lead_max_, lead);
    granted.push_back(worker);
  }
  return granted;
}

void Admission::Visit(StateVisitor& visitor) {
  clocks_.Visit(visitor);
  VisitFixed(visitor, "waiting", waiting_);
  visitor.Int("lead_max", lead_max_);
}

std::string Admission::Describe() const {
  const std::string bound = bound_ == kNoBound ? "no bound" : fmt::format("bound {}", bound_);
  return fmt::format("clocks {}, waiting {}, {}", clocks_.Describe(), DescribeMembers(waiting_),
                     bound);
}

}  // namespace dtrain::ps
