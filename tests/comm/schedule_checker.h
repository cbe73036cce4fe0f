// Runs a schedule on symbols instead of numbers, for all ranks at once, to prove what it computes.
//
// The value of a block is a text that says how it was added up, such as "((0+1)+2)".  A receive matches the first
// message of its pair, as in a transport.  The ranks run in turn, each as far as it can.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

class ScheduleChecker {
 public:
  ScheduleChecker(CollectiveScheduler scheduler, int world, NodeMap node_of = {}) : world_(world) {
    for (Rank rank = 0; rank < world; ++rank) {
      schedules_.push_back(scheduler(world, rank, node_of));
      next_.push_back(0);
      fetched_.emplace_back();
      receiving_.emplace_back();
      values_.emplace_back(schedules_[rank].blocks, std::to_string(rank));
    }
    while (Sweep()) {
    }
  }

  // Returns "" if every move ran, every message was received, and every rank has in each block the canonical sum
  // (`ordered`) or else a sum with every rank in it once.
  std::string Fault(bool ordered) const {
    for (Rank rank = 0; rank < world_; ++rank) {
      if (next_[rank] != schedules_[rank].moves.size()) return Name(rank) + "waits forever";
      if (!fetched_[rank].empty()) return Name(rank) + "fetches what it never adds";
      if (values_[rank].size() != values_[0].size()) return Name(rank) + "cuts into other blocks";
      for (size_t block = 0; block < values_[rank].size(); ++block) {
        const std::string& value = values_[rank][block];
        if (value != values_[0][block]) return Name(rank) + "disagrees: " + value;
        if (ordered && value != Canonical()) return Name(rank) + "out of order: " + value;
        if (rank == 0 && !EveryRankOnce(value)) return Name(rank) + "not every rank once: " + value;
      }
    }
    for (const auto& [pair, messages] : wire_) {
      if (!messages.empty()) return Name(pair.second) + "never receives a message";
    }
    return fault_;
  }

 private:
  struct Message {
    int block;
    std::vector<std::string> values;
  };

  static std::string Name(Rank rank) { return "rank " + std::to_string(rank) + ": "; }

  std::string Canonical() const {
    std::string sum = "0";
    for (Rank rank = 1; rank < world_; ++rank) sum = "(" + sum + "+" + std::to_string(rank) + ")";
    return sum;
  }

  bool EveryRankOnce(const std::string& value) const {
    std::multiset<int> found;
    for (size_t i = 0; i < value.size();) {
      size_t digits = 0;
      while (i + digits < value.size() && std::isdigit(value[i + digits])) ++digits;
      if (digits > 0) found.insert(std::stoi(value.substr(i, digits)));
      i += digits > 0 ? digits : 1;
    }
    std::multiset<int> wanted;
    for (Rank rank = 0; rank < world_; ++rank) wanted.insert(rank);
    return found == wanted;
  }

  bool Sweep() {
    bool moved = false;
    for (Rank rank = 0; rank < world_; ++rank) {
      while (next_[rank] < schedules_[rank].moves.size() &&
             Carry(rank, schedules_[rank].moves[next_[rank]])) {
        ++next_[rank];
        moved = true;
      }
    }
    return moved;
  }

  bool Carry(Rank rank, const Move& move) {
    BeginRound(rank, move.round);
    if (move.kind == MoveKind::kSend) {
      Send(rank, move);
      return true;
    }
    if (move.kind == MoveKind::kSum) {
      Sum(rank, move);
      return true;
    }
    auto& messages = wire_[{move.peer, rank}];
    if (messages.empty()) return DeferIfSendsFollow(rank, move);
    const Message& message = messages.front();
    if (message.block != move.block || static_cast<int>(message.values.size()) != move.count) {
      fault_ = Name(rank) + "gets the wrong block";
    }
    Take(rank, move, message.values);
    messages.pop_front();
    return true;
  }

  void BeginRound(Rank rank, int round) {
    auto& fetched = fetched_[rank];
    if (!fetched.empty() && fetched.front().round != round) {
      fault_ = Name(rank) + "fetches what it never adds";
      fetched.clear();
    }
    auto& receiving = receiving_[rank];
    if (!receiving.empty() && receiving.front().round != round) receiving.clear();
  }

  void Send(Rank rank, const Move& move) {
    for (const Move& other : receiving_[rank]) {
      if (other.block < move.block + move.count && move.block < other.block + other.count) {
        fault_ = Name(rank) + "sends what it may not have received";
      }
    }
    const auto begin = values_[rank].begin() + move.block;
    wire_[{rank, move.peer}].push_back({move.block, {begin, begin + move.count}});
  }

  // A receive is posted and awaited only at the end of its round or at the next sum, so a send of the same round may
  // come first.  The checker swaps the two moves, which is equivalent.
  bool DeferIfSendsFollow(Rank rank, const Move& move) {
    auto& moves = schedules_[rank].moves;
    for (size_t later = next_[rank] + 1; later < moves.size(); ++later) {
      if (moves[later].round != move.round || moves[later].kind == MoveKind::kSum) return false;
      if (moves[later].kind != MoveKind::kSend) continue;
      for (size_t i = next_[rank]; i < later; ++i) {
        if (moves[i].kind == MoveKind::kReceive) receiving_[rank].push_back(moves[i]);
      }
      Send(rank, moves[later]);
      moves.erase(moves.begin() + static_cast<std::ptrdiff_t>(later));
      return DeferIfSendsFollow(rank, move);
    }
    return false;
  }

  struct Fetched {
    int round;
    Rank from;
    int block;
    std::vector<std::string> values;
  };

  void Take(Rank rank, const Move& move, const std::vector<std::string>& values) {
    if (move.kind == MoveKind::kReceive) {
      std::copy(values.begin(), values.end(), values_[rank].begin() + move.block);
      receiving_[rank].push_back(move);
      return;
    }
    const auto& fetched = fetched_[rank];
    if (!fetched.empty() && fetched.back().from >= move.peer) {
      fault_ = Name(rank) + "does not fetch in rank order";
    }
    fetched_[rank].push_back({move.round, move.peer, move.block, values});
  }

  void Sum(Rank rank, const Move& move) {
    receiving_[rank].clear();
    for (const Fetched& one : fetched_[rank]) {
      if (one.block == move.block && static_cast<int>(one.values.size()) == move.count) continue;
      fault_ = Name(rank) + "adds different blocks";
      return;
    }
    for (int i = 0; i < move.count; ++i) {
      std::vector<std::pair<Rank, std::string>> terms = {{rank, values_[rank][move.block + i]}};
      for (const Fetched& one : fetched_[rank]) terms.emplace_back(one.from, one.values[i]);
      std::sort(terms.begin(), terms.end());
      std::string sum = terms[0].second;
      for (size_t t = 1; t < terms.size(); ++t) sum = "(" + sum + "+" + terms[t].second + ")";
      values_[rank][move.block + i] = sum;
    }
    fetched_[rank].clear();
  }

  int world_;
  std::vector<CollectiveSchedule> schedules_;
  std::vector<size_t> next_;
  std::vector<std::vector<Fetched>> fetched_;
  std::vector<std::vector<Move>> receiving_;  // posted in this round and not yet awaited
  std::vector<std::vector<std::string>> values_;
  std::map<std::pair<Rank, Rank>, std::deque<Message>> wire_;
  std::string fault_;
};

}  // namespace dtrain
