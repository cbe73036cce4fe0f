#include "framework/sim/schedule_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "framework/sim/round_cost.h"

namespace dtrain {

// Goes over the schedules of all ranks, node by node, and keeps the maxima.
class ScheduleCost::Survey {
 public:
  Survey(const std::vector<int>& node_of, NodeMap plan_nodes)
      : node_of_(node_of),
        plan_nodes_(plan_nodes),
        copied_to_(node_of.size()),
        moved_(node_of.size()) {}

  void AddNode(CollectiveScheduler scheduler, const std::vector<Rank>& ranks) {
    outgoing_.clear();
    incoming_.clear();
    for (const Rank rank : ranks) {
      AddRank(scheduler(static_cast<int>(node_of_.size()), rank, plan_nodes_), rank);
    }
    int64_t all_outgoing = 0;
    int64_t all_incoming = 0;
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      most_[i].nic = std::max({most_[i].nic, outgoing_[i], incoming_[i]});
      all_outgoing += outgoing_[i];
      all_incoming += incoming_[i];
    }
    whole_.nic = std::max({whole_.nic, all_outgoing, all_incoming});
  }

  std::vector<Rounds> Alike() const {
    std::vector<Rounds> alike;
    for (const Round& round : most_) {
      if (alike.empty() || !(alike.back().round == round)) alike.push_back({0, round});
      alike.back().count += 1;
    }
    return alike;
  }

  // For copies inside nodes it adds the maxima of the rounds, as if they were always between the
  // same two ranks.
  Round Whole() const {
    Round whole = whole_;
    for (const Round& round : most_) whole.inside += round.inside;
    return whole;
  }

  int blocks() const { return blocks_; }
  std::vector<BlocksMoved> TakeMoved() { return std::move(moved_); }

 private:
  void Reserve(size_t rounds) {
    if (most_.size() < rounds) most_.resize(rounds);
    if (outgoing_.size() < rounds) outgoing_.resize(rounds);
    if (incoming_.size() < rounds) incoming_.resize(rounds);
  }

  void AddRank(const CollectiveSchedule& schedule, Rank rank) {
    blocks_ = schedule.blocks;
    if (schedule.moves.empty()) return;
    Reserve(schedule.moves.back().round + 1);
    std::vector<Round> own(most_.size());
    int64_t fetched = 0;  // blocks fetched and not yet added
    int round_of_copies = 0;
    for (const Move& move : schedule.moves) {
      if (std::exchange(round_of_copies, move.round) != move.round) ForgetCopies();
      Round& round = own[move.round];
      if (move.kind == MoveKind::kSum) {
        round.additions += std::exchange(fetched, 0);
        continue;
      }
      const bool sends = move.kind == MoveKind::kSend;
      const bool stays = node_of_[move.peer] == node_of_[rank];
      fetched += move.kind == MoveKind::kFetch ? move.count : 0;
      round.messages += 1;
      round.run = std::max(round.run, move.count);
      Count(move, stays, moved_[rank]);
      if (!stays) {
        (sends ? outgoing_ : incoming_)[move.round] += move.count;
      } else if (sends) {
        if (copied_to_[move.peer] == 0) receivers_.push_back(move.peer);
        round.inside = std::max(round.inside, copied_to_[move.peer] += move.count);
      }
    }
    ForgetCopies();
    KeepMost(own);
  }

  void ForgetCopies() {
    for (const Rank receiver : receivers_) copied_to_[receiver] = 0;
    receivers_.clear();
  }

  static void Count(const Move& move, bool stays, BlocksMoved& moved) {
    if (move.kind != MoveKind::kSend) {
      moved.received += move.count;
      return;
    }
    moved.sent += move.count;
    moved.messages += 1;
    if (stays) moved.inside += move.count;
  }

  void KeepMost(const std::vector<Round>& own) {
    Round whole;
    for (size_t i = 0; i < own.size(); ++i) {
      most_[i].inside = std::max(most_[i].inside, own[i].inside);
      most_[i].messages = std::max(most_[i].messages, own[i].messages);
      most_[i].additions = std::max(most_[i].additions, own[i].additions);
      most_[i].run = std::max(most_[i].run, own[i].run);
      whole.messages += own[i].messages;
      whole.additions += own[i].additions;
    }
    whole_.messages = std::max(whole_.messages, whole.messages);
    whole_.additions = std::max(whole_.additions, whole.additions);
  }

  const std::vector<int>& node_of_;
  const NodeMap plan_nodes_;
  std::vector<Round> most_;
  Round whole_;
  std::vector<int64_t> outgoing_;  // blocks through the node's NIC, by round
  std::vector<int64_t> incoming_;
  std::vector<int64_t> copied_to_;  // by receiver: blocks that this rank sends inside the node
  std::vector<Rank> receivers_;     // receivers with copied_to_ != 0
  std::vector<BlocksMoved> moved_;
  int blocks_ = 1;
};

ScheduleCost::ScheduleCost(CollectiveScheduler scheduler, int ranks, const NetworkModel& network,
                           double add_ns_per_byte, std::vector<int> node_of, NodeMap plan_nodes)
    : network_(network), add_ns_per_byte_(add_ns_per_byte) {
  if (node_of.empty()) node_of = NodesInOrder(ranks, network.per_node);
  std::map<int, std::vector<Rank>> ranks_of;
  for (Rank rank = 0; rank < ranks; ++rank) ranks_of[node_of[rank]].push_back(rank);
  Survey survey(node_of, plan_nodes.empty() ? NodeMap(node_of) : plan_nodes);
  for (const auto& [node, members] : ranks_of) survey.AddNode(scheduler, members);
  rounds_ = survey.Alike();
  whole_ = survey.Whole();
  blocks_ = survey.blocks();
  moved_ = survey.TakeMoved();
}

Nanos ScheduleCost::Of(int64_t n) const {
  TokenBucket nic(network_.between_nodes);
  double ns = 0;
  for (const Rounds& rounds : rounds_) {
    if (network_.between_nodes.bucket_bytes == 0) {
      ns += rounds.count * RoundTime(rounds.round, n, nic);
      continue;
    }
    for (int i = 0; i < rounds.count; ++i) ns += RoundTime(rounds.round, n, nic);
  }
  return std::llround(ns);
}

double ScheduleCost::RoundTime(const Round& round, int64_t n, TokenBucket& nic) const {
  // Blocks may differ in size; the first ones are the longest.
  const auto run_bytes =
      static_cast<double>(BlockOf(n, blocks_, 0, round.run).size() * sizeof(float));
  const double block_bytes = run_bytes / round.run;
  const RoundLoad load{.between_nodes = round.nic > 0,
                       .inside_node = round.inside > 0,
                       .nic_bytes = block_bytes * static_cast<double>(round.nic),
                       .inside_bytes = block_bytes * static_cast<double>(round.inside),
                       .messages = round.messages,
                       .added_bytes = block_bytes * static_cast<double>(round.additions)};
  return RoundNs(network_, load, add_ns_per_byte_, nic);
}

Nanos ScheduleCost::BusyFor(int64_t n) const {
  const double block_bytes = static_cast<double>(n * sizeof(float)) / blocks_;
  const double nic = block_bytes * static_cast<double>(whole_.nic);
  const double inside = block_bytes * static_cast<double>(whole_.inside);
  const double overhead = network_.message_overhead_us * 1e3 * static_cast<double>(whole_.messages);
  const double additions = block_bytes * static_cast<double>(whole_.additions) * add_ns_per_byte_;
  return std::llround(std::max({nic / network_.between_nodes.bytes_per_ns(),
                                inside / network_.inside_node.bytes_per_ns(), overhead}) +
                      additions);
}

}  // namespace dtrain
