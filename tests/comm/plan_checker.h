// Carries a plan out on symbols instead of numbers, all ranks at once, to prove what it computes.
//
// The value of a piece is a text that says how it was added up, as in "((0+1)+2)".  A message is
// matched with the first of its pair, as in a transport; every rank runs as far as it can, in turn.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/plan.h"

namespace dtrain {

class PlanChecker {
 public:
  PlanChecker(Planner planner, int world) : world_(world) {
    for (Rank rank = 0; rank < world; ++rank) {
      plans_.push_back(planner(world, rank));
      next_.push_back(0);
      fetched_.emplace_back();
      values_.emplace_back(plans_[rank].pieces, std::to_string(rank));
    }
    while (Sweep()) {
    }
  }

  // "" when every move was carried out, every message was received, and every rank holds in every
  // piece the canonical sum (`ordered`) or else the same sum with every rank in it once.
  std::string Fault(bool ordered) const {
    for (Rank rank = 0; rank < world_; ++rank) {
      if (next_[rank] != plans_[rank].moves.size()) return Name(rank) + "waits forever";
      for (size_t piece = 0; piece < values_[rank].size(); ++piece) {
        const std::string& value = values_[rank][piece];
        if (value != values_[0][piece]) return Name(rank) + "disagrees: " + value;
        if (ordered && value != Canonical()) return Name(rank) + "out of order: " + value;
        if (!EveryRankOnce(value)) return Name(rank) + "not every rank once: " + value;
      }
    }
    for (const auto& [pair, messages] : wire_) {
      if (!messages.empty()) return Name(pair.second) + "never receives a message";
    }
    return fault_;
  }

 private:
  struct Message {
    int piece;
    std::string value;
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
      while (next_[rank] < plans_[rank].moves.size() &&
             Carry(rank, plans_[rank].moves[next_[rank]])) {
        ++next_[rank];
        moved = true;
      }
    }
    return moved;
  }

  bool Carry(Rank rank, const Move& move) {
    auto& fetched = fetched_[rank];
    if (!fetched.empty() && fetched.front().round != move.round) fetched.clear();
    if (move.kind == MoveKind::kSend) {
      wire_[{rank, move.peer}].push_back({move.piece, values_[rank][move.piece]});
      return true;
    }
    if (move.kind == MoveKind::kSum) {
      Sum(rank, move);
      return true;
    }
    auto& messages = wire_[{move.peer, rank}];
    if (messages.empty()) return DeferIfSendsFollow(rank, move);
    if (messages.front().piece != move.piece) fault_ = Name(rank) + "gets the wrong piece";
    Take(rank, move, messages.front().value);
    messages.pop_front();
    return true;
  }

  // Receives are posted, not awaited, until their round ends; so a send or another receive of the
  // same round may come first.  Swapping the two moves says the same.
  bool DeferIfSendsFollow(Rank rank, const Move& move) {
    auto& moves = plans_[rank].moves;
    for (size_t later = next_[rank] + 1; later < moves.size(); ++later) {
      if (moves[later].round != move.round) return false;
      if (moves[later].kind == MoveKind::kSend) {
        wire_[{rank, moves[later].peer}].push_back(
            {moves[later].piece, values_[rank][moves[later].piece]});
        moves.erase(moves.begin() + static_cast<std::ptrdiff_t>(later));
        return DeferIfSendsFollow(rank, move);
      }
    }
    return false;
  }

  struct Fetched {
    int round;
    Rank from;
    int piece;
    std::string value;
  };

  void Take(Rank rank, const Move& move, const std::string& value) {
    if (move.kind == MoveKind::kReceive) {
      values_[rank][move.piece] = value;
      return;
    }
    auto& fetched = fetched_[rank];
    if (!fetched.empty() && fetched.back().from >= move.peer) {
      fault_ = Name(rank) + "does not fetch in rank order";
    }
    fetched.push_back({move.round, move.peer, move.piece, value});
  }

  void Sum(Rank rank, const Move& move) {
    std::vector<std::pair<Rank, std::string>> terms = {{rank, values_[rank][move.piece]}};
    for (const Fetched& one : fetched_[rank]) {
      if (one.piece != move.piece) fault_ = Name(rank) + "adds different pieces";
      terms.emplace_back(one.from, one.value);
    }
    std::sort(terms.begin(), terms.end());
    std::string sum = terms[0].second;
    for (size_t i = 1; i < terms.size(); ++i) sum = "(" + sum + "+" + terms[i].second + ")";
    values_[rank][move.piece] = sum;
  }

  int world_;
  std::vector<Plan> plans_;
  std::vector<size_t> next_;
  std::vector<std::vector<Fetched>> fetched_;
  std::vector<std::vector<std::string>> values_;
  std::map<std::pair<Rank, Rank>, std::deque<Message>> wire_;
  std::string fault_;
};

}  // namespace dtrain
