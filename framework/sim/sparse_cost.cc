#include "framework/sim/sparse_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/comm/sparse_collective.h"

namespace dtrain {
namespace {

constexpr double kEntryBytes = sizeof(int32_t) + sizeof(float);

}  // namespace

// Adds up the messages of a round and finds the busiest NIC and rank.
class SparseCost::Survey {
 public:
  explicit Survey(const std::vector<int>& node_of)
      : node_of_(node_of),
        outgoing_(Nodes()),
        incoming_(Nodes()),
        posts_(node_of.size()),
        arrived_(node_of.size()) {}

  std::vector<Round> RoundsOf(const SparsePhase& phase) {
    std::vector<Round> rounds = AllToAll(phase.exchanges);
    for (const std::vector<SparseMove>& moves : phase.schedule) {
      for (const SparseMove& move : moves) Add(move.from, move.to, move.blocks);
      rounds.push_back(Take());
    }
    for (Round& round : rounds) {
      if (!phase.adds) round.added = 0;
    }
    return rounds;
  }

 private:
  void Add(Rank from, Rank to, double blocks) {
    const int node = node_of_[from];
    round_.all += blocks;
    round_.sends += 1;
    posts_[from] += 1;
    posts_[to] += 1;
    arrived_[to] += blocks;
    if (node == node_of_[to]) {
      round_.inside = std::max(round_.inside, blocks);
      round_.all_inside += blocks;
      return;
    }
    round_.between = true;
    outgoing_[node] += blocks;
    incoming_[node_of_[to]] += blocks;
  }

  Round Take() {
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      round_.nic = std::max({round_.nic, outgoing_[i], incoming_[i]});
    }
    round_.posts = *std::max_element(posts_.begin(), posts_.end());
    round_.added = *std::max_element(arrived_.begin(), arrived_.end());
    for (auto* const counts : {&outgoing_, &incoming_, &posts_, &arrived_}) {
      std::fill(counts->begin(), counts->end(), 0);
    }
    return std::exchange(round_, {});
  }

  std::vector<Round> AllToAll(const std::vector<int>& exchanges) const;

  size_t Nodes() const {
    return static_cast<size_t>(*std::max_element(node_of_.begin(), node_of_.end())) + 1;
  }

  const std::vector<int>& node_of_;
  Round round_;
  std::vector<double> outgoing_, incoming_;  // blocks by NIC
  std::vector<double> posts_;                // messages by rank
  std::vector<double> arrived_;              // blocks by rank
};

// Which exchanges leave a node depends on the rank, so the total traffic of a NIC is distributed
// evenly over them.
std::vector<SparseCost::Round> SparseCost::Survey::AllToAll(
    const std::vector<int>& exchanges) const {
  std::vector<double> members(Nodes());
  for (const int node : node_of_) members[static_cast<size_t>(node)] += 1;
  const auto all = static_cast<double>(node_of_.size());
  double nic = 0;  // blocks through the busiest NIC in all exchanges
  double all_inside = 0;
  for (const double local : members) {
    nic = std::max(nic, local * (all - local));
    all_inside += local * (local - 1);
  }
  std::vector<Round> rounds;
  for (const double steps : exchanges) {
    const double share = steps / (all - 1);
    rounds.push_back({.nic = nic * share,
                      .inside = all_inside > 0 ? 1.0 : 0.0,
                      .all = all * steps,
                      .all_inside = all_inside * share,
                      .sends = all * steps,
                      .posts = 2 * steps,
                      .between = nic > 0,
                      .added = steps});
  }
  return rounds;
}

SparseCost::SparseCost(const std::string& collective, int ranks, const NetworkModel& network,
                       double add_ns_per_byte, std::vector<int> node_of)
    : collective_(collective), ranks_(ranks), network_(network), add_ns_per_byte_(add_ns_per_byte) {
  if (node_of.empty()) node_of = NodesInOrder(ranks, network.per_node);
  Survey survey(node_of);
  const auto& entry = SparseCollectiveRegistry::Get("sparse collective", collective);
  for (SparsePhase& phase : entry.phases(ranks)) {
    std::vector<Round> rounds = survey.RoundsOf(phase);
    phase.schedule.clear();
    phases_.push_back({std::move(phase), std::move(rounds)});
  }
}

double SparseCost::BlockBytes(const SparsePhase& phase, const SparseLoad& load) {
  const auto fixed = static_cast<double>(phase.fixed_bytes);
  if (phase.entries == SparsePhase::Entries::kNone) return fixed;
  const bool selected = phase.entries == SparsePhase::Entries::kSelected;
  return fixed + kEntryBytes * (selected ? load.entries : load.k) / phase.parts;
}

// Returns how often the phase is run in this call, or the mean over all calls.
double SparseCost::TimesIn(const SparsePhase& phase, const SparseLoad& load) {
  if (load.call < 0) return phase.repeats * (1.0 / static_cast<double>(phase.period));
  return load.call % phase.period == 0 ? phase.repeats : 0;
}

Nanos SparseCost::Of(const SparseLoad& load) const {
  TokenBucket nic(network_.between_nodes);
  double ns = 0;
  for (const Phase& phase : phases_) {
    const double times = TimesIn(phase.sizes, load);
    if (times > 0) ns += times * PhaseNs(phase, load, nic);
  }
  return std::llround(ns);
}

double SparseCost::PhaseNs(const Phase& phase, const SparseLoad& load, TokenBucket& nic) const {
  const double block_bytes = BlockBytes(phase.sizes, load);
  const double added_bytes = block_bytes - static_cast<double>(phase.sizes.fixed_bytes);
  double ns = 0;
  for (const Round& round : phase.rounds) {
    const RoundLoad moved{.between_nodes = round.between,
                          .inside_node = round.inside > 0,
                          .nic_bytes = round.nic * block_bytes,
                          .inside_bytes = round.inside * block_bytes,
                          .messages = std::llround(round.posts) * phase.sizes.messages,
                          .added_bytes = round.added * added_bytes};
    ns += RoundNs(network_, moved, add_ns_per_byte_, nic);
  }
  return ns;
}

SparseCost::Moved SparseCost::MovedBy(const SparseLoad& load) const {
  Moved moved;
  for (const Phase& phase : phases_) {
    const double block_bytes = BlockBytes(phase.sizes, load);
    const double times = TimesIn(phase.sizes, load);
    for (const Round& round : phase.rounds) {
      const double bytes = times * block_bytes * round.all / ranks_;
      moved.bytes_sent += bytes;
      moved.bytes_inside += times * block_bytes * round.all_inside / ranks_;
      moved.messages += times * phase.sizes.messages * round.sends / ranks_;
      if (phase.sizes.for_thresholds) moved.periodic_bytes += bytes;
    }
  }
  return moved;
}

}  // namespace dtrain
