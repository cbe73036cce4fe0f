#include "framework/comm/plan.h"

#include <algorithm>
#include <map>

namespace dtrain {
namespace {

constexpr int64_t kCut = 16;  // floats

void FetchAll(Plan& plan, int world, Rank rank, int piece) {
  for (Rank peer = 0; peer < world; ++peer) {
    if (peer != rank) plan.moves.push_back({0, MoveKind::kFetch, peer, piece});
  }
}

// Each rank begins with its right neighbour, so that no rank is everybody's first.
template <class PieceFor>
void SendAll(Plan& plan, int round, int world, Rank rank, PieceFor piece_for) {
  for (int step = 1; step < world; ++step) {
    const Rank peer = (rank + step) % world;
    plan.moves.push_back({round, MoveKind::kSend, peer, piece_for(peer)});
  }
}

}  // namespace

int Plan::fetches_max() const {
  std::map<int, int> fetches;
  int most = 0;
  for (const Move& move : moves) {
    if (move.kind == MoveKind::kFetch) most = std::max(most, fetches[move.round] += move.count);
  }
  return most;
}

Plan OrderedPlan(int world, Rank rank, NodeMap /*node_of*/) {
  Plan plan{.pieces = world, .moves = {}};
  FetchAll(plan, world, rank, rank);
  SendAll(plan, 0, world, rank, [](Rank peer) { return peer; });
  plan.moves.push_back({0, MoveKind::kSum, rank, rank});
  SendAll(plan, 1, world, rank, [rank](Rank) { return rank; });
  for (int step = 1; step < world; ++step) {
    const Rank owner = (rank + world - step) % world;
    plan.moves.push_back({1, MoveKind::kReceive, owner, owner});
  }
  return plan;
}

Plan ExchangePlan(int world, Rank rank, NodeMap /*node_of*/) {
  Plan plan{.pieces = 1, .moves = {}};
  FetchAll(plan, world, rank, 0);
  SendAll(plan, 0, world, rank, [](Rank) { return 0; });
  plan.moves.push_back({0, MoveKind::kSum, rank, 0});
  return plan;
}

Plan RingPlan(int world, Rank rank, NodeMap /*node_of*/) {
  Plan plan{.pieces = world, .moves = {}};
  const Rank next = (rank + 1) % world;
  const Rank previous = (rank + world - 1) % world;
  const auto piece = [world, rank](int back) { return (rank + 2 * world - back) % world; };
  for (int round = 0; round < world - 1; ++round) {
    plan.moves.push_back({round, MoveKind::kFetch, previous, piece(round + 2)});
    plan.moves.push_back({round, MoveKind::kSend, next, piece(round + 1)});
    plan.moves.push_back({round, MoveKind::kSum, rank, piece(round + 2)});
  }
  for (int step = 0; step < world - 1; ++step) {
    const int round = world - 1 + step;
    plan.moves.push_back({round, MoveKind::kSend, next, piece(step)});
    plan.moves.push_back({round, MoveKind::kReceive, previous, piece(step + 1)});
  }
  return plan;
}

int64_t BytesInside(const Plan& plan, Rank rank, const std::vector<int>& node_of, int64_t n) {
  int64_t bytes = 0;
  for (const Move& move : plan.moves) {
    if (move.kind != MoveKind::kSend || node_of[move.peer] != node_of[rank]) continue;
    bytes += PieceOf(n, plan.pieces, move.piece, move.count).size() *
             static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

Range PieceOf(int64_t n, int pieces, int piece, int count) {
  const Range all{0, (n + kCut - 1) / kCut};
  const int64_t begin = SplitEvenly(all, pieces, piece).begin;
  const int64_t end = SplitEvenly(all, pieces, piece + count - 1).end;
  return {std::min(n, begin * kCut), std::min(n, end * kCut)};
}

}  // namespace dtrain
