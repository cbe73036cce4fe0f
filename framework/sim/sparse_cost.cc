#include "framework/sim/sparse_cost.h"

#include <algorithm>
#include <cmath>

#include "framework/comm/power_of_two.h"
#include "framework/comm/sparse_arithmetic.h"
#include "framework/comm/sparse_collective.h"
#include "framework/comm/sparse_oktopk.h"

namespace dtrain {
namespace {

constexpr double kCountBytes = sizeof(SparseCount);
constexpr double kEntryBytes = sizeof(int32_t) + sizeof(float);
constexpr double kSumBytes = sizeof(int64_t);
// Entries are sent as three transport messages: count, positions, values; two if the count is
// known.
constexpr int kCounted = 3;
constexpr int kKnown = 2;

}  // namespace

// Adds up the messages of a round and finds the busiest NIC and rank.
class SparseCost::Survey {
 public:
  explicit Survey(const std::vector<int>& node_of)
      : node_of_(node_of), outgoing_(Nodes()), incoming_(Nodes()), posts_(node_of.size()) {}

  int ranks() const { return static_cast<int>(node_of_.size()); }

  void Add(Rank from, Rank to, double blocks) {
    const int node = node_of_[from];
    round_.all += blocks;
    round_.sends += 1;
    posts_[from] += 1;
    posts_[to] += 1;
    if (node == node_of_[to]) {
      round_.inside = std::max(round_.inside, blocks);
      round_.all_inside += blocks;
      return;
    }
    round_.between = true;
    outgoing_[node] += blocks;
    incoming_[node_of_[to]] += blocks;
  }

  void Take(Rounds& rounds, double added = 0) {
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      round_.nic = std::max({round_.nic, outgoing_[i], incoming_[i]});
    }
    round_.posts = *std::max_element(posts_.begin(), posts_.end());
    round_.added = added;
    rounds.push_back(round_);
    round_ = {};
    for (auto* const counts : {&outgoing_, &incoming_, &posts_}) {
      std::fill(counts->begin(), counts->end(), 0);
    }
  }

  Rounds Shifts();
  Rounds TreeUp();
  Rounds CountSums();
  Rounds Split() const;

 private:
  size_t Nodes() const {
    return static_cast<size_t>(*std::max_element(node_of_.begin(), node_of_.end())) + 1;
  }

  const std::vector<int>& node_of_;
  Round round_;
  std::vector<double> outgoing_, incoming_;  // blocks by NIC
  std::vector<double> posts_;                // messages by rank
};

SparseCost::Rounds SparseCost::Survey::Shifts() {
  Rounds rounds;
  for (int have = 1; have < ranks(); have *= 2) {
    const int blocks = std::min(have, ranks() - have);
    for (Rank rank = 0; rank < ranks(); ++rank) Add((rank + have) % ranks(), rank, blocks);
    Take(rounds);
  }
  return rounds;
}

SparseCost::Rounds SparseCost::Survey::TreeUp() {
  Rounds rounds;
  const int paired = PowerOfTwoWithin(ranks());
  for (Rank rank = paired; rank < ranks(); ++rank) Add(rank, rank - paired, 1);
  if (paired < ranks()) Take(rounds, 1);
  for (int distance = 1; distance < paired; distance *= 2) {
    for (Rank rank = 0; rank < paired; rank += 2 * distance) Add(rank + distance, rank, 1);
    Take(rounds, 1);
  }
  return rounds;
}

SparseCost::Rounds SparseCost::Survey::CountSums() {
  Rounds rounds;
  const int paired = PowerOfTwoWithin(ranks());
  for (Rank rank = paired; rank < ranks(); ++rank) Add(rank, rank - paired, 1);
  if (paired < ranks()) Take(rounds);
  for (int bit = 1; bit < paired; bit *= 2) {
    for (Rank rank = 0; rank < paired; ++rank) Add(rank, rank ^ bit, 1);
    Take(rounds);
  }
  for (Rank rank = paired; rank < ranks(); ++rank) Add(rank - paired, rank, 1);
  if (paired < ranks()) Take(rounds);
  return rounds;
}

// A round has kUnderWay steps.  Which steps leave a node depends on the rank, so the total traffic
// of a NIC is distributed evenly over the steps.
SparseCost::Rounds SparseCost::Survey::Split() const {
  std::vector<double> members(Nodes());
  for (const int node : node_of_) members[static_cast<size_t>(node)] += 1;
  const double all = ranks();
  double nic = 0;  // blocks through the busiest NIC in all steps
  double all_inside = 0;
  for (const double local : members) {
    nic = std::max(nic, local * (all - local));
    all_inside += local * (local - 1);
  }
  Rounds rounds;
  for (int done = 0; done < ranks() - 1; done += SparseSplit::kUnderWay) {
    const double steps = std::min(SparseSplit::kUnderWay, ranks() - 1 - done);
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
  SparseCollectiveRegistry::Get("sparse collective", collective);
  if (node_of.empty()) node_of = NodesInOrder(ranks, network.per_node);
  Survey survey(node_of);
  shifts_ = survey.Shifts();
  up_ = survey.TreeUp();
  down_ = Rounds(up_.rbegin(), up_.rend());
  for (Round& round : down_) round.added = 0;
  sums_ = survey.CountSums();
  split_ = survey.Split();
}

// Returns how often an action with this period happens in this call, or the mean over all calls.
double SparseCost::TimesIn(const SparseLoad& load, int64_t period) const {
  if (load.call < 0) return 1.0 / static_cast<double>(period);
  return load.call % period == 0 ? 1 : 0;
}

std::vector<SparseCost::Phase> SparseCost::PhasesOf(const SparseLoad& load) const {
  const double entries = kEntryBytes * load.entries;
  const double asked = kEntryBytes * load.k;
  if (ranks_ == 1) return {};
  if (collective_ == "gather") return {{&shifts_, kCountBytes + entries, kCounted}};
  if (collective_ == "gtopk") {
    return {{&up_, kCountBytes + asked, kCounted}, {&down_, kCountBytes + asked, kCounted}};
  }
  const double regions = TimesIn(load, OkTopK::kRegionPeriod);
  const double thresholds = KthLargestSum::kDigits * TimesIn(load, OkTopK::kThresholdPeriod);
  return {{&sums_, kSumBytes * ranks_, 1, regions},
          {&split_, kCountBytes + entries / ranks_, kCounted},
          {&sums_, kSumBytes * KthLargestSum::kCounts, 1, thresholds, true},
          {&shifts_, kCountBytes, 1},
          {&shifts_, asked / ranks_, kKnown}};
}

Nanos SparseCost::Of(const SparseLoad& load) const {
  TokenBucket nic(network_.between_nodes);
  double ns = 0;
  for (const Phase& phase : PhasesOf(load)) {
    if (phase.times > 0) ns += phase.times * PhaseNs(phase, nic);
  }
  return std::llround(ns);
}

double SparseCost::PhaseNs(const Phase& phase, TokenBucket& nic) const {
  double ns = 0;
  for (const Round& round : *phase.rounds) {
    const RoundLoad load{
        .between_nodes = round.between,
        .inside_node = round.inside > 0,
        .nic_bytes = round.nic * phase.block_bytes,
        .inside_bytes = round.inside * phase.block_bytes,
        .messages = std::llround(round.posts) * phase.messages,
        .added_bytes = round.added * std::max(0.0, phase.block_bytes - kCountBytes)};
    ns += RoundNs(network_, load, add_ns_per_byte_, nic);
  }
  return ns;
}

SparseCost::Moved SparseCost::MovedBy(const SparseLoad& load) const {
  Moved moved;
  for (const Phase& phase : PhasesOf(load)) {
    for (const Round& round : *phase.rounds) {
      const double bytes = phase.times * phase.block_bytes * round.all / ranks_;
      moved.bytes_sent += bytes;
      moved.bytes_inside += phase.times * phase.block_bytes * round.all_inside / ranks_;
      moved.messages += phase.times * phase.messages * round.sends / ranks_;
      if (phase.periodic) moved.periodic_bytes += bytes;
    }
  }
  return moved;
}

}  // namespace dtrain
