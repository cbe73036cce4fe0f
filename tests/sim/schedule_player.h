// Runs schedules over a Network, message by message, as the reference for the costs of sim/schedule_cost.h and
// sim/collective_cost.h.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/comm/collective_schedule.h"
#include "framework/sim/network.h"

namespace dtrain {

// All ranks take the vectors (`floats` of each) through the schedule in order, `lanes` at a time, as
// ScheduledCollective does with chunks.  A rank makes one addition at a time.
class SchedulePlayer {
 public:
  // When a message leaves: at once, as short ones do (eager), or when its receiver has reached its round, as long ones
  // of MPI do (rendezvous).
  enum class Send { kEager, kRendezvous };

  SchedulePlayer(CollectiveScheduler scheduler, int ranks, const NetworkModel& model,
                 double add_ns_per_byte, std::vector<int64_t> vectors, int lanes = 1,
                 std::vector<int> node_of = {}, Send send = Send::kEager)
      : network_(events_, model, ranks, node_of),
        add_ns_per_byte_(add_ns_per_byte),
        vectors_(std::move(vectors)),
        lanes_(lanes),
        send_(send) {
    if (node_of.empty()) node_of = NodesInOrder(ranks, model.per_node);
    for (Rank rank = 0; rank < ranks; ++rank) {
      ranks_.push_back({.schedule = scheduler(ranks, rank, node_of), .runs = {}});
      RankState& state = ranks_.back();
      Run fresh;
      for (const Move& move : state.schedule.moves) {
        fresh.missing.resize(std::max<size_t>(fresh.missing.size(), move.round + 1));
        fresh.missing[move.round] += Awaited(move) ? 1 : 0;
      }
      state.runs.assign(vectors_.size(), fresh);
    }
  }

  // Returns when all ranks have all sums.
  Nanos Finish() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) BeginRuns(static_cast<Rank>(rank));
    while (events_.RunNext()) {
    }
    return events_.now();
  }

 private:
  struct Run {
    std::vector<int> missing;  // messages, by round
    int round = 0;
    bool begun = false;
    bool adding = false;
    std::vector<std::pair<Rank, Move>> offered;  // sent by others, for later rounds
  };
  struct RankState {
    CollectiveSchedule schedule;
    std::vector<Run> runs;
    size_t begun = 0;
    int busy = 0;  // lanes in use
    Nanos processor_free = 0;
  };

  int64_t Bytes(const CollectiveSchedule& schedule, const Move& move, size_t run) const {
    return 4 * BlockOf(vectors_[run], schedule.blocks, move.block, move.count).size();
  }
  static bool Awaited(const Move& move) {
    return move.kind == MoveKind::kFetch || move.kind == MoveKind::kReceive;
  }

  void BeginRuns(Rank rank) {
    RankState& state = ranks_[rank];
    while (state.busy < lanes_ && state.begun < state.runs.size()) {
      ++state.busy;
      const size_t run = state.begun++;
      state.runs[run].begun = true;
      BeginRound(rank, run);
    }
  }

  void BeginRound(Rank rank, size_t index) {
    Run& run = ranks_[rank].runs[index];
    for (const auto& [from, move] : std::exchange(run.offered, {})) Offer(from, move, rank, index);
    for (const Move& move : ranks_[rank].schedule.moves) {
      if (move.round != run.round || move.kind != MoveKind::kSend) continue;
      Offer(rank, move, move.peer, index);
    }
    EndRoundIfComplete(rank, index);
  }

  void Offer(Rank from, const Move& move, Rank to, size_t index) {
    Run& receiver = ranks_[to].runs[index];
    if (send_ == Send::kRendezvous && (!receiver.begun || receiver.round < move.round)) {
      receiver.offered.emplace_back(from, move);
      return;
    }
    network_.Send(from, to, Bytes(ranks_[from].schedule, move, index),
                  [this, to, round = move.round, index] { Arrived(to, round, index); });
  }

  void Arrived(Rank rank, int round, size_t index) {
    Run& run = ranks_[rank].runs[index];
    run.missing[round] -= 1;
    if (run.begun && round == run.round) EndRoundIfComplete(rank, index);
  }

  void EndRoundIfComplete(Rank rank, size_t index) {
    RankState& state = ranks_[rank];
    Run& run = state.runs[index];
    if (run.adding || run.missing[run.round] > 0) return;
    double bytes_added = 0;
    for (const Move& move : state.schedule.moves) {
      if (move.round != run.round || move.kind != MoveKind::kFetch) continue;
      bytes_added += static_cast<double>(Bytes(state.schedule, move, index));
    }
    run.adding = true;
    const Nanos begin = std::max(events_.now(), state.processor_free);
    const Nanos end = begin + WholeNanos(bytes_added * add_ns_per_byte_);
    if (bytes_added > 0) state.processor_free = end;
    events_.At(bytes_added > 0 ? end : events_.now(),
               [this, rank, index] { EndRound(rank, index); });
  }

  void EndRound(Rank rank, size_t index) {
    RankState& state = ranks_[rank];
    Run& run = state.runs[index];
    run.adding = false;
    run.round += 1;
    if (run.round < static_cast<int>(run.missing.size())) return BeginRound(rank, index);
    --state.busy;
    BeginRuns(rank);
  }

  EventQueue events_;
  Network network_;
  double add_ns_per_byte_;
  const std::vector<int64_t> vectors_;
  const int lanes_;
  const Send send_;
  std::vector<RankState> ranks_;
};

}  // namespace dtrain
