#include "framework/sim/plan_price.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace dtrain {

// Walks over the plans, node by node, and keeps the most of everything.
class PlanPrice::Survey {
 public:
  explicit Survey(const std::vector<int>& node_of) : node_of_(node_of) {}

  void AddNode(Planner planner, const std::vector<Rank>& ranks) {
    outgoing_.clear();
    incoming_.clear();
    for (const Rank rank : ranks) AddRank(planner(static_cast<int>(node_of_.size()), rank), rank);
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      most_[i].card = std::max({most_[i].card, outgoing_[i], incoming_[i]});
    }
  }

  std::vector<Rounds> Alike() const {
    std::vector<Rounds> alike;
    for (const Round& round : most_) {
      if (alike.empty() || !(alike.back().round == round)) alike.push_back({0, round});
      alike.back().count += 1;
    }
    return alike;
  }

 private:
  void Reserve(size_t rounds) {
    if (most_.size() < rounds) most_.resize(rounds);
    if (outgoing_.size() < rounds) outgoing_.resize(rounds);
    if (incoming_.size() < rounds) incoming_.resize(rounds);
  }

  void AddRank(const Plan& plan, Rank rank) {
    if (plan.moves.empty()) return;
    Reserve(plan.moves.back().round + 1);
    std::vector<Round> own(most_.size());
    std::map<std::pair<int, Rank>, int64_t> inside;  // by round and receiver
    int64_t fetched = 0;                             // and not yet added
    for (const Move& move : plan.moves) {
      Round& round = own[move.round];
      if (move.kind == MoveKind::kSum) {
        round.additions += std::exchange(fetched, 0);
        continue;
      }
      const bool sends = move.kind == MoveKind::kSend;
      fetched += move.kind == MoveKind::kFetch ? 1 : 0;
      round.messages += 1;
      if (node_of_[move.peer] != node_of_[rank]) {
        (sends ? outgoing_ : incoming_)[move.round] += 1;
      } else if (sends) {
        round.inside = std::max(round.inside, ++inside[{move.round, move.peer}]);
      }
    }
    KeepMost(own);
  }

  void KeepMost(const std::vector<Round>& own) {
    for (size_t i = 0; i < own.size(); ++i) {
      most_[i].inside = std::max(most_[i].inside, own[i].inside);
      most_[i].messages = std::max(most_[i].messages, own[i].messages);
      most_[i].additions = std::max(most_[i].additions, own[i].additions);
    }
  }

  const std::vector<int>& node_of_;
  std::vector<Round> most_;
  std::vector<int64_t> outgoing_;  // of the node's card, by round
  std::vector<int64_t> incoming_;
};

PlanPrice::PlanPrice(Planner planner, int ranks, const NetworkModel& network,
                     double add_ns_per_byte, std::vector<int> node_of)
    : ranks_(ranks), network_(network), add_ns_per_byte_(add_ns_per_byte) {
  if (node_of.empty()) node_of = NodesInOrder(ranks, network.per_node);
  std::map<int, std::vector<Rank>> ranks_of;
  for (Rank rank = 0; rank < ranks; ++rank) ranks_of[node_of[rank]].push_back(rank);
  Survey survey(node_of);
  for (const auto& [node, members] : ranks_of) survey.AddNode(planner, members);
  rounds_ = survey.Alike();
}

Nanos PlanPrice::Of(int64_t n) const {
  // The first piece is a longest one.
  const auto piece_bytes = static_cast<double>(PieceOf(n, ranks_, 0).size() * sizeof(float));
  TokenBucket card(network_.between_nodes);
  double ns = 0;
  for (const Rounds& rounds : rounds_) {
    if (network_.between_nodes.bucket_bytes == 0) {
      ns += rounds.count * RoundTime(rounds.round, piece_bytes, card);
      continue;
    }
    for (int i = 0; i < rounds.count; ++i) ns += RoundTime(rounds.round, piece_bytes, card);
  }
  return std::llround(ns);
}

double PlanPrice::RoundTime(const Round& round, double piece_bytes, TokenBucket& card) const {
  const double overhead = network_.message_overhead_us * 1e3;
  // The first message's at the sender, the last one's at the receiver; the others go on meanwhile.
  const double others = overhead * static_cast<double>(round.messages - 2);
  const double card_bytes = piece_bytes * static_cast<double>(round.card);
  const double card_ns = std::max(0.0, card.TimeFor(card_bytes));
  double slowest = 0;
  if (round.card > 0) {
    slowest = network_.between_nodes.latency_us * 1e3 + std::max(card_ns, others);
  }
  if (round.inside > 0) {
    const double bytes = piece_bytes * static_cast<double>(round.inside);
    const double copy_ns = bytes / network_.inside_node.bytes_per_ns();
    slowest = std::max(slowest, network_.inside_node.latency_us * 1e3 + std::max(copy_ns, others));
  }
  const double ns = slowest + 2 * overhead +
                    piece_bytes * static_cast<double>(round.additions) * add_ns_per_byte_;
  card.Pass(card_bytes, ns);
  return ns;
}

}  // namespace dtrain
