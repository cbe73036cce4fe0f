#include "framework/strategies/gssp/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/strategies/gssp/grouping.h"
#include "framework/strategies/visit.h"

namespace dtrain::gssp {
namespace {

constexpr double kOldShare = 0.3;  // of the average that an epoch's time is mixed with
constexpr int64_t kEpochsMisplaced = 2;

int64_t Mixed(int64_t old, int64_t now) {
  return static_cast<int64_t>(kOldShare * static_cast<double>(old) +
                              (1 - kOldShare) * static_cast<double>(now));
}

}  // namespace

Coordinator::Coordinator(const ActorSetup& setup, const GsspOptions& options,
                         std::vector<int64_t> server_of)
    : placement_(setup.placement),
      options_(options),
      policy_(DensityPolicyOf(setup.compress)),
      server_of_(std::move(server_of)),
      compute_(placement_.workers, 0),
      transfers_(placement_.workers, 0),
      densities_(placement_.servers, ToMillionths(kDensityAtStart)),
      heard_(placement_.workers, 0),
      misplaced_(placement_.workers, 0) {}

// Decides when all have been heard at this rest and, at the run's first ones, have been measured.
void Coordinator::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  const auto stats = Unpack<Stats>(message);
  const bool first = compute_[worker] == 0;
  compute_[worker] = first ? stats.compute : Mixed(compute_[worker], stats.compute);
  transfers_[worker] = first ? stats.transfers : Mixed(transfers_[worker], stats.transfers);
  heard_[worker] = 1;
  if (std::find(heard_.begin(), heard_.end(), 0) != heard_.end()) return;
  heard_.assign(heard_.size(), 0);
  if (std::find(compute_.begin(), compute_.end(), 0) != compute_.end()) return;
  if (options_.measured && ShouldRegroup(stats.epochs)) Decide(effects);
  DecideDensities(stats.epochs, effects);
  epochs_ = stats.epochs;
}

std::vector<double> Coordinator::OwnTimes() const {
  std::vector<double> times;
  for (size_t worker = 0; worker < compute_.size(); ++worker) {
    times.push_back(static_cast<double>(compute_[worker] + transfers_[worker]));
  }
  return times;
}

// Once an epoch, by the groups that there are now.
void Coordinator::DecideDensities(int64_t epochs, Effects& effects) {
  if (policy_ == DensityPolicy::kNone || epochs <= epochs_) return;
  std::vector<GroupSpeed> groups(placement_.servers);
  for (size_t group = 0; group < groups.size(); ++group) {
    groups[group].density = FromMillionths(densities_[group]);
  }
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    GroupSpeed& group = groups[server_of_[worker]];
    ++group.workers;
    group.compute += static_cast<double>(compute_[worker]);
    group.transfers += static_cast<double>(transfers_[worker]);
  }
  for (GroupSpeed& group : groups) {
    group.compute /= std::max(group.workers, 1);
    group.transfers /= std::max(group.workers, 1);
  }
  const std::vector<double> densities = DensitiesOf(policy_, groups, epochs + 1);
  for (size_t group = 0; group < groups.size(); ++group) {
    densities_[group] = ToMillionths(densities[group]);
  }
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    effects.Send(worker, Pack(Density{densities[server_of_[worker]]}));
  }
}

bool Coordinator::ShouldRegroup(int64_t epochs) {
  if (regroups_ == 0) return true;
  if (epochs <= epochs_) return false;
  const std::vector<bool> misplaced =
      Misplaced(OwnTimes(), std::vector<int>(server_of_.begin(), server_of_.end()));
  bool due = false;
  for (size_t worker = 0; worker < misplaced.size(); ++worker) {
    misplaced_[worker] = misplaced[worker] ? misplaced_[worker] + 1 : 0;
    due |= misplaced_[worker] >= kEpochsMisplaced;
  }
  return due;
}

// There are never more groups than before, since a server that has none hears of no gradient; once
// their number is decided it stays.
void Coordinator::Decide(Effects& effects) {
  misplaced_.assign(misplaced_.size(), 0);
  const int now = static_cast<int>(*std::max_element(server_of_.begin(), server_of_.end())) + 1;
  const bool decided = options_.groups > 0 || regroups_ > 0;
  const std::vector<int> group_of = GroupBySpeed(
      OwnTimes(),
      {.groups = decided ? now : 0, .groups_max = now, .equal_size = options_.equal_size});
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
  VisitFixed(visitor, "compute", compute_);
  VisitFixed(visitor, "transfers", transfers_);
  VisitFixed(visitor, "densities", densities_);
  VisitFixed(visitor, "heard", heard_);
  VisitFixed(visitor, "misplaced", misplaced_);
}

std::string Coordinator::Describe() const {
  return fmt::format("gssp coordinator: grouped {} times", regroups_);
}

void Coordinator::Report(ProtocolReport& report) const { report.regroups += regroups_; }

}  // namespace dtrain::gssp
