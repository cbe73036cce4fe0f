#include "framework/strategies/inhad/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::inhad {
namespace {

constexpr int kLookTimer = 1;
constexpr int64_t kVainLooks = 100;

}  // namespace

Scheduler::Scheduler(const Placement& placement, const InhadOptions& options)
    : placement_(placement), options_(options), nodes_(placement.nodes()) {
  for (const int node : placement.node_of) ++nodes_[node].workers;
}

// ------------------------------------------------------------------ messages of nodes

void Scheduler::OnIn(int node, const In& in, Effects& effects) {
  Node& of = nodes_[node];
  if (in.submitted > of.known) vain_ = 0;
  of.known = std::max(of.known, in.submitted);
  of.low_computing = in.low_computing;
  of.low_pending = in.low_pending;
  of.heard = true;
  MarkAlive(of);
  WatchNodes(effects);
  effects.Send(placement_.NodeId(node), Pack(Noted{}));
}

// An overtaken node takes part in a round first, since it would be overtaken for ever if it received
// weights again at once.
std::vector<int> Scheduler::TakeRefreshes() {
  std::vector<int> refreshed;
  if (open_ != 0) return refreshed;
  for (size_t j = 0; j < nodes_.size(); ++j) {
    Node& node = nodes_[j];
    if (node.gets == version_) node.heard = false;
    if (node.given_up != 0 || node.gets == version_ || Receiving(node)) continue;
    if (node.overtaken != 0 || (!options_.broadcast_all && node.heard == 0)) continue;
    node.heard = false;
    node.gets = version_;
    refreshed.push_back(static_cast<int>(j));
  }
  return refreshed;
}

// All gradients that the node had were pulled, including those that it got after its last IN.
void Scheduler::OnGrad(int node, const Grad& grad) {
  Node& of = nodes_[node];
  DT_CHECK(of.asked == grad.round)
      << "node " << node << " answers round " << grad.round << "; " << Describe();
  of.asked = 0;
  MarkAlive(of);
  of.pulled += grad.count + grad.dropped;
  of.known = of.pulled;
  of.low_pending = kNever;
  if (grad.count == 0) {  // it is in no update, so only a refresh brings it newer weights
    of.heard = true;
    return;
  }
  of.answered = grad.round;
  of.count = grad.count;
  of.samples = grad.samples;
  for (size_t i = 0; i + 1 < grad.bases.size(); i += 2) {
    counted_.AddStaleness(version_ - grad.bases[i], grad.bases[i + 1]);
  }
}

void Scheduler::OnHave(int node, const Have& have, Effects& effects) {
  Node& of = nodes_[node];
  of.has = have.version;
  MarkAlive(of);
  if (options_.pipelined) return;
  of.overtaken = of.gets < version_;
  const bool left_out = of.asked == 0 && of.answered == 0;
  if (open_ != 0 && left_out && TakesPart(of)) PullFrom(node, effects);
}

void Scheduler::OnFewer(int node, const Fewer& fewer) {
  nodes_[node].workers = fewer.workers;
  MarkAlive(nodes_[node]);
}

void Scheduler::OnApplied(const Applied& applied) {
  if (applied.version == version_) ++applied_;
}

void Scheduler::OnTimer(int timer, Effects& effects) {
  DT_CHECK(timer == kLookTimer) << timer;
  LookAfterNodes(effects);
}

// ------------------------------------------------------------------ death

void Scheduler::MarkAlive(Node& node) { node.silent = node.doubted = false; }

int64_t Scheduler::NodesLeft() const {
  return std::count_if(nodes_.begin(), nodes_.end(),
                       [](const Node& node) { return node.given_up == 0; });
}

// Sets the timer for the next check of the nodes.  The last node is never given up, so it is not
// checked.  Checks stop after kVainLooks of them without a new gradient: their messages would
// otherwise hide a stalled run from StallWatch.
void Scheduler::WatchNodes(Effects& effects) {
  if (!options_.may_fail || options_.pull_timeout == 0 || looks_ != 0) return;
  if (NodesLeft() < 2 || vain_ > kVainLooks) return;
  looks_ = true;
  effects.SetTimer(kLookTimer, options_.pull_timeout);
}

void Scheduler::LookAfterNodes(Effects& effects) {
  looks_ = false;
  ++vain_;
  for (size_t j = 0; j < nodes_.size(); ++j) {
    Node& node = nodes_[j];
    if (node.given_up != 0 || !std::exchange(node.silent, true)) continue;
    if (node.doubted != 0) {
      if (NodesLeft() > 1) GiveUp(static_cast<int>(j), effects);
      continue;
    }
    node.doubted = true;
    if (node.asked == 0) effects.Send(placement_.NodeId(static_cast<int>(j)), Pack(Ask{}));
  }
  WatchNodes(effects);
}

// Gradients that the node has sent before, and that are in no update yet, are part of the next one.
void Scheduler::GiveUp(int node, Effects& effects) {
  nodes_[node].given_up = true;
  nodes_[node].asked = 0;
  for (int other = 1; other < placement_.servers; ++other) {
    effects.Send(placement_.ServerId(other), Pack(inhad::GiveUp{node}));
  }
  effects.Send(placement_.NodeId(node), Pack(inhad::GiveUp{node}));
}

void Scheduler::Ignore(const Message& message) {
  ++ignored_;
  if (message.kind == Grad::kKind) lost_ += Unpack<Grad>(message).count;
}

void Scheduler::GiveUpNodesOf(const std::vector<ActorId>& workers, Effects& effects) {
  std::vector<int64_t> living(nodes_.size(), 0);
  for (ActorId worker = 0; worker < placement_.workers; ++worker) {
    const bool gone = std::find(workers.begin(), workers.end(), worker) != workers.end();
    if (!gone) ++living[placement_.node_of[worker]];
  }
  for (size_t j = 0; j < nodes_.size(); ++j) {
    if (living[j] == 0 && nodes_[j].given_up == 0) GiveUp(static_cast<int>(j), effects);
  }
}

// ------------------------------------------------------------------ rounds

int64_t Scheduler::PendingOfAll() const {
  int64_t pending = 0;
  for (const Node& node : nodes_) {
    if (node.given_up == 0) pending += node.pending();
    if (node.answered != 0) pending += node.count;
  }
  return pending;
}

// Returns the gradients that the next round would pull.
int64_t Scheduler::PendingToPull() const {
  int64_t pending = 0;
  for (const Node& node : nodes_) {
    if (TakesPart(node)) pending += node.pending();
    if (node.answered != 0) pending += node.count;
  }
  return pending;
}

int64_t Scheduler::NodesToAwait() const {
  return std::count_if(nodes_.begin(), nodes_.end(),
                       [](const Node& node) { return node.asked != 0; });
}

std::optional<Close> Scheduler::TakeClose() {
  if (!IsComplete()) return std::nullopt;
  open_ = false;
  Close close;
  for (size_t j = 0; j < nodes_.size(); ++j) {
    Node& node = nodes_[j];
    if (node.answered == 0) continue;
    close.count += node.count;
    close.samples += node.samples;
    close.nodes.insert(close.nodes.end(), {static_cast<int64_t>(j), node.answered});
    node.answered = 0;
  }
  if (close.count == 0) return std::nullopt;  // no update, and no version
  ++version_;
  applied_ = 0;
  for (const Close::Sum& sum : close.Sums()) nodes_[sum.node].gets = version_;
  for (size_t j = 0; j < nodes_.size(); ++j) {
    Node& node = nodes_[j];
    if (node.gets == version_) continue;
    if (!Receiving(node)) {
      node.overtaken = false;
      if (options_.broadcast_all) node.gets = version_;
    } else if (options_.broadcast_all) {
      close.nodes.insert(close.nodes.end(), {static_cast<int64_t>(j), Close::kNoWeights});
    }
  }
  return close;
}

bool Scheduler::Receiving(const Node& node) const {
  return !options_.pipelined && node.has != node.gets;
}

bool Scheduler::AnyReceiving() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [this](const Node& node) { return node.given_up == 0 && Receiving(node); });
}

// True if the next round pulls from the node.
bool Scheduler::TakesPart(const Node& node) const {
  return node.given_up == 0 && node.pending() > 0 && !Receiving(node);
}

// A node that has the last version has got it from all servers.
bool Scheduler::AllServersUpdated() const {
  return version_ == 0 || applied_ == placement_.servers - 1 ||
         std::any_of(nodes_.begin(), nodes_.end(),
                     [this](const Node& node) { return node.has == version_; });
}

// True if a round at `version` would leave out a gradient that is too old in the round after it.
bool Scheduler::TooOldAfter(int64_t version) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    if (node.given_up != 0) return false;
    const int64_t low =
        TakesPart(node) ? node.low_computing : std::min(node.low_computing, node.low_pending);
    return version + 1 - low > options_.staleness_bound();
  });
}

bool Scheduler::Due() const {
  int64_t workers = 0;
  for (const Node& node : nodes_) workers += node.given_up != 0 ? 0 : node.workers;
  if (PendingToPull() < options_.GradientsOfUpdate(static_cast<int>(workers))) return false;
  return options_.late != Late::kWait || !TooOldAfter(version_);
}

void Scheduler::OpenIfDue(Effects& effects) {
  if (open_ != 0 || !AllServersUpdated()) return;
  if (flushing_ != 0 ? AnyReceiving() : !Due()) return;
  open_ = true;
  ++round_;
  for (int j = 0; j < std::ssize(nodes_); ++j) {
    // The last pull asks all nodes, since some may have gradients that no IN has reported yet.
    const bool asked = flushing_ != 0 ? nodes_[j].given_up == 0 : TakesPart(nodes_[j]);
    if (asked) PullFrom(j, effects);
  }
  flushing_ = false;
}

void Scheduler::PullFrom(int node, Effects& effects) {
  nodes_[node].asked = round_;
  nodes_[node].overtaken = false;
  effects.Send(placement_.NodeId(node), Pack(Pull{round_, version_}));
}

void Scheduler::Visit(StateVisitor& visitor) {
  for (Node& node : nodes_) {
    visitor.Int("known", node.known);
    visitor.Int("pulled", node.pulled);
    visitor.Int("low_computing", node.low_computing);
    visitor.Int("low_pending", node.low_pending);
    visitor.Int("asked", node.asked);
    visitor.Int("answered", node.answered);
    visitor.Int("count", node.count);
    visitor.Int("samples", node.samples);
    visitor.Int("heard", node.heard);
    visitor.Int("has", node.has);
    visitor.Int("gets", node.gets);
    visitor.Int("overtaken", node.overtaken);
  }
  visitor.Int("version", version_);
  visitor.Int("round", round_);
  visitor.Int("open", open_);
  visitor.Int("applied", applied_);
  visitor.Int("flushing", flushing_);
  visitor.Ints("staleness_counts", counted_.staleness);
  if (!options_.may_fail) return;
  for (Node& node : nodes_) {
    visitor.Int("workers", node.workers);
    visitor.Int("silent", node.silent);
    visitor.Int("doubted", node.doubted);
    visitor.Int("given_up", node.given_up);
  }
  visitor.Int("looks", looks_);
  visitor.Int("vain", vain_);
  visitor.Int("lost", lost_);
  visitor.Int("ignored", ignored_);
}

std::string Scheduler::Describe() const {
  std::vector<int64_t> awaited, receiving, given_up;
  for (const Node& node : nodes_) {
    awaited.push_back(node.asked != 0 ? 1 : 0);
    given_up.push_back(node.given_up);
    receiving.push_back(node.given_up == 0 && Receiving(node) ? 1 : 0);
  }
  std::string state =
      open_ != 0 ? fmt::format("round {} waits for nodes {}", round_, DescribeMembers(awaited))
                 : Counted(PendingOfAll(), "gradient") + " pending";
  if (open_ == 0 && !AllServersUpdated()) {
    state += ", some server has not made the update yet";
  } else if (open_ == 0 && AnyReceiving()) {
    state += fmt::format(", nodes {} have no new weights yet", DescribeMembers(receiving));
  } else if (open_ == 0 && options_.late == Late::kWait && TooOldAfter(version_)) {
    state += ", a round would make the slowest gradient too old";
  }
  if (std::count(given_up.begin(), given_up.end(), 1) > 0) {
    state += fmt::format(", nodes {} are given up", DescribeMembers(given_up));
  }
  return fmt::format("version {}, {}", version_, state);
}

void Scheduler::Report(ProtocolReport& report) const {
  report.Add(counted_);
  report.Count("rounds", version_);
  report.Count(kLostGradients.name, lost_);
  report.Count("ignored", ignored_);
}

}  // namespace dtrain::inhad
