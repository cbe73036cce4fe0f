#include "framework/strategies/gssp/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/strategies/gssp/grouping.h"
#include "framework/strategies/visit.h"

namespace dtrain::gssp {
namespace {

constexpr double kOldShare = 0.3;      // of the average that an epoch's time is mixed with
constexpr int64_t kEpochsMisplaced = 2;

}  // namespace

Coordinator::Coordinator(const Placement& placement, const GsspOptions& options,
                         std::vector<int64_t> server_of)
    : placement_(placement),
      options_(options),
      server_of_(std::move(server_of)),
      times_(placement.workers, 0),
      heard_(placement.workers, 0),
      misplaced_(placement.workers, 0) {}

// Decides when all have been heard.  At the run's first rests some may not have been measured yet.
void Coordinator::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  const auto stats = Unpack<Stats>(message);
  const auto old = static_cast<double>(times_[worker]), now = static_cast<double>(stats.own);
  times_[worker] = static_cast<int64_t>(old == 0 ? now : kOldShare * old + (1 - kOldShare) * now);
  heard_[worker] = 1;
  if (std::find(heard_.begin(), heard_.end(), 0) != heard_.end()) return;
  heard_.assign(heard_.size(), 0);
  if (ShouldRegroup(stats.epochs)) Decide(effects);
  epochs_ = stats.epochs;
}

bool Coordinator::ShouldRegroup(int64_t epochs) {
  if (regroups_ == 0) return true;
  if (epochs <= epochs_) return false;
  const std::vector<double> times(times_.begin(), times_.end());
  const std::vector<bool> misplaced =
      Misplaced(times, std::vector<int>(server_of_.begin(), server_of_.end()));
  bool due = false;
  for (size_t worker = 0; worker < misplaced.size(); ++worker) {
    misplaced_[worker] = misplaced[worker] ? misplaced_[worker] + 1 : 0;
    due |= misplaced_[worker] >= kEpochsMisplaced;
  }
  return due;
}

// Once their number is decided it stays: a server that has no group hears of no gradient.
void Coordinator::Decide(Effects& effects) {
  misplaced_.assign(misplaced_.size(), 0);
  int64_t groups = options_.groups;
  if (groups == 0 && regroups_ > 0) {
    groups = *std::max_element(server_of_.begin(), server_of_.end()) + 1;
  }
  const std::vector<int> group_of = GroupBySpeed(
      std::vector<double>(times_.begin(), times_.end()),
      {.groups = static_cast<int>(groups),
       .groups_max = placement_.servers,
       .equal_size = options_.equal_size});
  server_of_.assign(group_of.begin(), group_of.end());
  const Regroup regroup{++regroups_, server_of_};
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(regroup));
  }
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    effects.Send(worker, Pack(regroup));
  }
}

void Coordinator::Visit(StateVisitor& visitor) {
  VisitFixed(visitor, "server_of", server_of_);
  visitor.Int("regroups", regroups_);
  visitor.Int("epochs", epochs_);
  VisitFixed(visitor, "times", times_);
  VisitFixed(visitor, "heard", heard_);
  VisitFixed(visitor, "misplaced", misplaced_);
}

std::string Coordinator::Describe() const {
  return fmt::format("gssp coordinator: grouped {} times", regroups_);
}

void Coordinator::Report(ProtocolReport& report) const { report.regroups += regroups_; }

}  // namespace dtrain::gssp
