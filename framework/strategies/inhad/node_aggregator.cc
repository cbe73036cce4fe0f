#include "framework/strategies/inhad/node_aggregator.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::inhad {
namespace {

constexpr int kInTimer = 0;

std::vector<ActorId> WorkersOf(const Placement& placement, int node) {
  std::vector<ActorId> workers;
  for (ActorId worker = 0; worker < placement.workers; ++worker) {
    if (placement.node_of[worker] == node) workers.push_back(worker);
  }
  return workers;
}

size_t SlotsOf(const InhadOptions& options, bool slot_a_worker, size_t workers) {
  if (slot_a_worker) return workers;
  const bool by_base = options.modulate == Modulate::kExact || options.late == Late::kDrop;
  return by_base ? static_cast<size_t>(options.staleness_bound() + 1) : 1;
}

}  // namespace

int64_t NodeAggregator::Slot::count() const {
  int64_t all = 0;
  for (const auto& [base, number] : bases) all += number;
  return all;
}

int64_t NodeAggregator::Slot::base() const {
  int64_t sum = 0;
  for (const auto& [base, number] : bases) sum += base * number;
  return sum / count();
}

NodeAggregator::NodeAggregator(int node, const ActorSetup& setup, const InhadOptions& options)
    : node_(node),
      placement_(setup.placement),
      options_(options),
      size_(setup.size),
      bound_(options.staleness_bound()),
      workers_(WorkersOf(setup.placement, node)),
      slot_a_worker_(options.lockstep && options.n == 1),
      slots_(SlotsOf(options, slot_a_worker_, workers_.size())),
      next_(workers_.size()),
      versions_(setup.placement.servers) {}

std::vector<VectorSpec> NodeAggregator::Vectors() const {
  const Range whole{0, size_};
  std::vector<VectorSpec> vectors = {{"weights", VectorRole::kPlain, whole, true},
                                     {"out", VectorRole::kPlain, whole}};
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    vectors.push_back({fmt::format("sum.{}", slot), VectorRole::kPlain, whole});
  }
  return vectors;
}

void NodeAggregator::OnMessage(ActorId from, const Message& message, Effects& effects) {
  switch (message.kind) {
    case Submit::kKind:
      return OnSubmit(from, Unpack<Submit>(message), effects);
    case Noted::kKind:
      in_under_way_ = false;
      return SayIn(effects);
    case Pull::kKind:
      return OnPull(Unpack<Pull>(message), effects);
    case Ask::kKind:
      return OnAsk(effects);
    case GiveUp::kKind:
      return OnGiveUp(effects);
    default:
      return OnWeights(from, Unpack<Weights>(message).version, effects);
  }
}

// ------------------------------------------------------------------ the Aggregator

int NodeAggregator::SlotOf(ActorId worker, int64_t base) const {
  if (slot_a_worker_) {
    return static_cast<int>(std::find(workers_.begin(), workers_.end(), worker) - workers_.begin());
  }
  return static_cast<int>(base % static_cast<int64_t>(slots_.size()));
}

void NodeAggregator::OnSubmit(ActorId worker, const Submit& submit, Effects& effects) {
  ++submitted_;
  if (over_ != 0) {
    ++lost_;
    return effects.Send(worker, Pack(Taken{}));
  }
  const auto local = std::find(workers_.begin(), workers_.end(), worker) - workers_.begin();
  DT_CHECK(local < std::ssize(workers_)) << "worker " << worker << " is of another node";
  DT_CHECK(submit.next >= next_[local]) << "worker " << worker << " goes back; " << Describe();
  next_[local] = submit.next;
  AddTo(SlotOf(worker, submit.base), submit, effects);
  effects.Send(worker, Pack(Taken{}));
  in_changed_ = true;
  SayIn(effects);
}

// If two bases share a slot, the older one is at least s_max + 1 versions behind the newer one, so
// with `late: drop` it would be dropped at its pull in any case.  This does not hold if each worker
// has a slot.
void NodeAggregator::AddTo(int index, const Submit& submit, Effects& effects) {
  Slot& slot = slots_[index];
  const bool other_base = !slot.empty() && !slot.bases.contains(submit.base);
  if (other_base && options_.late == Late::kDrop && !slot_a_worker_) {
    if (slot.base() > submit.base) {
      ++dropped_untold_;
      ++dropped_;
      return;
    }
    Drop(index, effects);
  } else if (other_base && slots_.size() > 1) {
    ++merged_;
  }
  if (slot.empty()) {
    effects.Take(kFirstSlot + index);
  } else {
    effects.Add(kFirstSlot + index, kArrived);
  }
  ++slot.bases[submit.base];
  slot.samples += submit.samples;
}

void NodeAggregator::Drop(int index, Effects& effects) {
  dropped_untold_ += slots_[index].count();
  dropped_ += slots_[index].count();
  effects.Clear(kFirstSlot + index);
  slots_[index] = {};
}

int64_t NodeAggregator::Pending() const {
  int64_t all = 0;
  for (const Slot& slot : slots_) all += slot.count();
  return all;
}

int64_t NodeAggregator::LowPending() const {
  int64_t low = kNever;
  for (const Slot& slot : slots_) {
    if (!slot.empty()) low = std::min(low, slot.bases.begin()->first);
  }
  return low;
}

double NodeAggregator::MeanStaleness(int64_t version) const {
  double sum = 0, all = 0;
  for (const Slot& slot : slots_) {
    for (const auto& [base, number] : slot.bases) {
      sum += static_cast<double>((version - base) * number);
      all += static_cast<double>(number);
    }
  }
  return sum / std::max(all, 1.0);
}

// Returns alpha / alpha0 of inhad.md 2.
double NodeAggregator::FactorOf(const Slot& slot, int64_t version, double mean_staleness) const {
  switch (options_.modulate) {
    case Modulate::kExact:
      return 1 / static_cast<double>(std::max<int64_t>(1, version - slot.base()));
    case Modulate::kMean:
      return 1 / std::max(1.0, mean_staleness);
    case Modulate::kOff:
      break;
  }
  return 1;
}

void NodeAggregator::OnPull(const Pull& pull, Effects& effects) {
  if (options_.late == Late::kDrop) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const bool late = !slots_[i].empty() && pull.version - slots_[i].base() > bound_;
      if (late) Drop(static_cast<int>(i), effects);
    }
  }
  Grad grad{.round = pull.round, .dropped = dropped_untold_};
  dropped_untold_ = 0;
  const double mean_staleness = MeanStaleness(pull.version);
  std::map<int64_t, int64_t> bases;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.empty()) continue;
    const VectorId sum = kFirstSlot + static_cast<VectorId>(i);
    const double factor = FactorOf(slot, pull.version, mean_staleness);
    if (grad.count == 0 && factor == 1) {
      effects.Take(kOut, sum);
    } else {
      effects.Add(kOut, sum, factor);
      effects.Clear(sum);
    }
    grad.count += slot.count();
    grad.samples += slot.samples;
    for (const auto& [base, number] : slot.bases) bases[base] += number;
    slot = {};
  }
  for (const auto& [base, number] : bases) grad.bases.insert(grad.bases.end(), {base, number});
  if (grad.count == 0) return effects.Send(placement_.ServerId(0), Pack(grad));
  ++pulls_;
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(grad),
                 {kOut, placement_.ShardOf(server, size_)});
  }
  effects.Clear(kOut);
}

// ------------------------------------------------------------------ the Postman

void NodeAggregator::SayIn(Effects& effects) {
  if (in_changed_ == 0 || in_under_way_ != 0 || in_too_early_ != 0) return;
  in_changed_ = false;
  in_under_way_ = true;
  // Dead workers have kNever here.
  const int64_t low_computing = *std::min_element(next_.begin(), next_.end());
  effects.Send(placement_.ServerId(0), Pack(In{submitted_, low_computing, LowPending()}));
  if (options_.in_interval == 0) return;
  in_too_early_ = true;
  effects.SetTimer(kInTimer, options_.in_interval);
}

void NodeAggregator::OnTimer(int, Effects& effects) {
  in_too_early_ = false;
  SayIn(effects);
}

// With one server the weights are sent on by reference.  The parts of several servers are copied
// into one vector, which is complete when all have the same version: servers may be a version
// apart, and a worker must never get two versions at once.
void NodeAggregator::OnWeights(ActorId from, int64_t version, Effects& effects) {
  const int server = placement_.ServerOf(from);
  if (versions_[server] == version) return;  // both a Refresh and the broadcast sent this version
  versions_[server] = version;
  const bool alone = placement_.servers == 1;
  if (!alone) effects.Take(kWeights);
  const bool complete = std::all_of(versions_.begin(), versions_.end(),
                                    [version](int64_t other) { return other == version; });
  if (!complete) return;
  for (size_t local = 0; local < workers_.size(); ++local) {
    if (!Lives(local)) continue;
    effects.Send(workers_[local], Pack(Weights{version}), {alone ? kArrived : kWeights});
  }
  effects.Send(placement_.ServerId(0), Pack(Have{version}));
}

// ------------------------------------------------------------------ death

void NodeAggregator::OnGone(ActorId worker, Effects& effects) {
  const auto local = std::find(workers_.begin(), workers_.end(), worker) - workers_.begin();
  next_[local] = kNever;
  if (over_ != 0) return;
  const auto left =
      static_cast<int64_t>(next_.size()) - std::count(next_.begin(), next_.end(), kNever);
  effects.Send(placement_.ServerId(0), Pack(Fewer{left}));
  in_changed_ = true;
  SayIn(effects);
}

// Answers with an IN.  If one is in flight, that is the answer.
void NodeAggregator::OnAsk(Effects& effects) {
  in_changed_ = true;
  in_too_early_ = false;
  SayIn(effects);
}

// The node was only slow.  Its workers continue, but their gradients are lost.
void NodeAggregator::OnGiveUp(Effects& effects) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].empty()) effects.Clear(kFirstSlot + static_cast<VectorId>(i));
  }
  LoseAll();
}

void NodeAggregator::LoseAll() {
  over_ = true;
  lost_ += Pending();
  slots_.assign(slots_.size(), {});
  in_changed_ = false;
}

void NodeAggregator::OnLostMessage(ActorId, const Message& message) {
  if (message.kind == Submit::kKind) ++lost_;
}

std::string NodeAggregator::Holds() const {
  return Pending() == 0 ? "" : fmt::format("{} not pulled yet", Counted(Pending(), "gradient"));
}

void NodeAggregator::Visit(StateVisitor& visitor) {
  for (Slot& slot : slots_) {
    std::vector<int64_t> bases;
    for (const auto& [base, number] : slot.bases) bases.insert(bases.end(), {base, number});
    visitor.Ints("bases", bases);
    slot.bases.clear();
    for (size_t i = 0; i + 1 < bases.size(); i += 2) slot.bases[bases[i]] = bases[i + 1];
    visitor.Int("samples", slot.samples);
  }
  visitor.Int("submitted", submitted_);
  VisitFixed(visitor, "next", next_);
  visitor.Int("in_under_way", in_under_way_);
  visitor.Int("in_changed", in_changed_);
  visitor.Int("in_too_early", in_too_early_);
  VisitFixed(visitor, "versions", versions_);
  visitor.Int("dropped_untold", dropped_untold_);
  visitor.Int("dropped", dropped_);
  visitor.Int("merged", merged_);
  visitor.Int("pulls", pulls_);
  if (!options_.may_fail) return;
  visitor.Int("over", over_);
  visitor.Int("lost", lost_);
}

std::string NodeAggregator::Describe() const {
  return fmt::format("inhad node {} of {}{}: {} submitted, {} not pulled yet", node_,
                     Counted(static_cast<int64_t>(workers_.size()), "worker"),
                     over_ != 0 ? ", given up" : "", Counted(submitted_, "gradient"), Pending());
}

void NodeAggregator::Report(ProtocolReport& report) const {
  report.Count("dropped", dropped_);
  report.Count(kLostGradients.name, lost_);
  report.Count("merged", merged_);
  report.Count(kUpTransfers.name, pulls_);
}

}  // namespace dtrain::inhad
