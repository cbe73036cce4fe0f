#include "framework/strategies/gssp/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::gssp {
namespace {

constexpr double kOldShare = 0.3;  // weight of the old average when a new time is mixed in
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
      alone_(placement_.workers, kUnknown),
      densities_(placement_.workers, kDensityAtStart),
      heard_(placement_.workers),
      misplaced_(placement_.workers) {}

void Coordinator::OnMessage(ActorId from, const Message& message, Effects& effects) {
  if (message.kind == Probed::kKind) {
    const auto probed = Unpack<Probed>(message);
    for (size_t worker = 0; worker < alone_.size(); ++worker) {
      alone_[worker] = std::max(alone_[worker], probed.alone[worker]);
    }
  } else {
    const auto stats = Unpack<Stats>(message);
    compute_[from] = Mixed(compute_[from], stats.compute);
    transfers_[from] = Mixed(transfers_[from], stats.transfers);
    heard_[from] = true;
    steps_ = stats.steps;
    epochs_heard_ = stats.epochs;
  }
  if (Contains(heard_, 0)) return;
  if (MustProbe()) return AskForProbes(effects);
  heard_.assign(heard_.size(), 0);
  if (Contains(compute_, kUnknown)) return;  // tried again at the next boundary
  if (options_.Regroups(placement_.servers) && ShouldRegroup()) Decide(effects);
  DecideDensities(effects);
  epochs_ = epochs_heard_;
}

// True once, at the first boundary after the steps in which speeds are measured.
bool Coordinator::MustProbe() const {
  return options_.Regroups(placement_.servers) && steps_ >= kStepsBeforeGrouping &&
         Contains(alone_, kUnknown);
}

void Coordinator::AskForProbes(Effects& effects) {
  if (std::exchange(asked_, true) != 0) return;  // some server has not answered yet
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(Probe{}));
  }
}

std::vector<double> Coordinator::OwnTimes() const {
  std::vector<double> times;
  for (size_t worker = 0; worker < compute_.size(); ++worker) {
    const auto alone = static_cast<double>(alone_[worker]);
    times.push_back(static_cast<double>(compute_[worker]) +
                    (policy_ == DensityPolicy::kNone
                         ? alone
                         : TransfersAt(alone, /*from=*/1, densities_[worker])));
  }
  return times;
}

// ------------------------------------------------------------------ groups

// The number of groups never grows, since a server without workers gets no gradients and its
// weights become outdated.  Once decided, the number stays.
GroupingRule Coordinator::Rule() const {
  const auto now = static_cast<int>(std::set(server_of_.begin(), server_of_.end()).size());
  const bool decided = options_.groups > 0 || grouped_ != 0;
  return {.groups = decided ? now : 0, .groups_max = now, .equal_size = options_.equal_size};
}

bool Coordinator::ShouldRegroup() {
  if (grouped_ == 0) return steps_ >= kStepsBeforeGrouping;
  if (epochs_heard_ <= epochs_) return false;
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
  const std::vector<double> compute(compute_.begin(), compute_.end());
  const std::vector<int64_t> server_of =
      KeepServers(GroupBySpeed(OwnTimes(), Rule(), compute), server_of_);
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

// Returns the speeds by server; zeros for a server without workers.  Transfer times are converted
// to the mean of the workers' densities, which differ if some workers came from another group.
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

// Decides the densities once per epoch, for the current groups.
void Coordinator::DecideDensities(Effects& effects) {
  if (policy_ == DensityPolicy::kNone || epochs_heard_ <= epochs_) return;
  const std::vector<double> densities = DensitiesOf(policy_, Speeds(), epochs_heard_ + 1);
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    const double now = densities[server_of_[worker]];
    const double before = std::exchange(densities_[worker], now);
    effects.Send(worker, Pack(Density{now}));
    // Until the first measurement at the new density, scale the old one.
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
  visitor.Int("steps", steps_);
  visitor.Int("asked", asked_);
  visitor.Int("epochs_heard", epochs_heard_);
  VisitFixed(visitor, "compute", compute_);
  VisitFixed(visitor, "transfers", transfers_);
  VisitFixed(visitor, "alone", alone_);
  VisitFixed(visitor, "densities", densities_);
  VisitFixed(visitor, "heard", heard_);
  VisitFixed(visitor, "misplaced", misplaced_);
}

std::string Coordinator::Describe() const {
  return fmt::format("gssp coordinator: grouped {}", Counted(regroups_, "time"));
}

void Coordinator::Report(ProtocolReport& report) const { report.Count("regroups", regroups_); }

}  // namespace dtrain::gssp
