#include "framework/strategies/gssp/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "framework/strategies/visit.h"

namespace dtrain::gssp {
namespace {

constexpr double kOldShare = 0.3;  // of the average that an epoch's time is mixed with
constexpr int64_t kEpochsMisplaced = 2;

int64_t Mixed(int64_t old, int64_t now) {
  if (old == kUnknown || now == kUnknown) return std::max(old, now);
  return static_cast<int64_t>(kOldShare * static_cast<double>(old) +
                              (1 - kOldShare) * static_cast<double>(now));
}

bool Contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Coordinator::Coordinator(const ActorSetup& setup, const GsspOptions& options,
                         std::vector<int64_t> server_of)
    : placement_(setup.placement),
      options_(options),
      policy_(DensityPolicyOf(setup.compress)),
      server_of_(std::move(server_of)),
      compute_(placement_.workers, kUnknown),
      transfers_(placement_.workers, kUnknown),
      densities_(placement_.workers, kDensityAtStart),
      heard_(placement_.workers),
      misplaced_(placement_.workers) {}

// Decides when all have been heard at this rest and, at the run's first ones, have been measured.
void Coordinator::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  const auto stats = Unpack<Stats>(message);
  compute_[worker] = Mixed(compute_[worker], stats.compute);
  transfers_[worker] = Mixed(transfers_[worker], stats.transfers);
  heard_[worker] = true;
  if (Contains(heard_, 0)) return;
  heard_.assign(heard_.size(), 0);
  if (Contains(compute_, kUnknown)) return;
  if (options_.measured && ShouldRegroup(stats)) Decide(effects);
  DecideDensities(stats.epochs, effects);
  epochs_ = stats.epochs;
}

std::vector<double> Coordinator::OwnTimes() const {
  std::vector<double> times;
  for (size_t worker = 0; worker < compute_.size(); ++worker) {
    times.push_back(
        static_cast<double>(compute_[worker] + std::max<int64_t>(transfers_[worker], 0)));
  }
  return times;
}

// ------------------------------------------------------------------ groups

// There are never more groups than before, since a server that has none hears of no gradient; once
// their number is decided it stays.
GroupingRule Coordinator::Rule() const {
  const auto now = static_cast<int>(std::set(server_of_.begin(), server_of_.end()).size());
  const bool decided = options_.groups > 0 || grouped_ != 0;
  return {.groups = decided ? now : 0, .groups_max = now, .equal_size = options_.equal_size};
}

bool Coordinator::ShouldRegroup(const Stats& stats) {
  if (grouped_ == 0) return stats.steps >= kStepsBeforeGrouping;
  if (stats.epochs <= epochs_) return false;
  const std::vector<bool> misplaced = Misplaced(OwnTimes(), server_of_, Rule());
  bool due = false;
  for (size_t worker = 0; worker < misplaced.size(); ++worker) {
    misplaced_[worker] = misplaced[worker] ? misplaced_[worker] + 1 : 0;
    due |= misplaced_[worker] >= kEpochsMisplaced;
  }
  return due;
}

void Coordinator::Decide(Effects& effects) {
  misplaced_.assign(misplaced_.size(), 0);
  const std::vector<int64_t> server_of = KeepServers(GroupBySpeed(OwnTimes(), Rule()), server_of_);
  grouped_ = true;
  if (server_of == server_of_) return;
  server_of_ = server_of;
  const Regroup regroup{++regroups_, server_of_};
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(regroup));
  }
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    effects.Send(worker, Pack(regroup));
  }
}

// ------------------------------------------------------------------ densities

// By server; zeros for one without workers.  Transfers are those at the mean of the workers' densities, which differ where some
// have come from another group.
std::vector<GroupSpeed> Coordinator::Speeds() const {
  std::vector<GroupSpeed> groups(placement_.servers);
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    GroupSpeed& group = groups[server_of_[worker]];
    if (group.workers == 0) group.density = densities_[worker];
    ++group.workers;
    group.density += (densities_[worker] - group.density) / group.workers;
  }
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    GroupSpeed& group = groups[server_of_[worker]];
    const auto measured = static_cast<double>(std::max<int64_t>(transfers_[worker], 0));
    group.compute += static_cast<double>(compute_[worker]) / group.workers;
    group.transfers += TransfersAt(measured, densities_[worker], group.density) / group.workers;
  }
  return groups;
}

// Once an epoch, by the groups that there are now.
void Coordinator::DecideDensities(int64_t epochs, Effects& effects) {
  if (policy_ == DensityPolicy::kNone || epochs <= epochs_) return;
  const std::vector<double> densities = DensitiesOf(policy_, Speeds(), epochs + 1);
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    const double now = densities[server_of_[worker]];
    const double before = std::exchange(densities_[worker], now);
    effects.Send(worker, Pack(Density{now}));
    // Until it has been measured: what comes is mixed with times at this density.
    if (transfers_[worker] == kUnknown) continue;
    transfers_[worker] =
        std::llround(TransfersAt(static_cast<double>(transfers_[worker]), before, now));
  }
}

void Coordinator::Visit(StateVisitor& visitor) {
  VisitFixed(visitor, "server_of", server_of_);
  visitor.Int("grouped", grouped_);
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
