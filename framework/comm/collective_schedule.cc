#include "framework/comm/collective_schedule.h"

#include <algorithm>
#include <map>

namespace dtrain {
namespace {

constexpr int64_t kCut = 16;  // floats

void FetchAll(CollectiveSchedule& schedule, int world, Rank rank, int block) {
  for (Rank peer = 0; peer < world; ++peer) {
    if (peer != rank) schedule.moves.push_back({0, MoveKind::kFetch, peer, block});
  }
}

// Each rank begins with its right neighbour, so that not all send to the same rank first.
template <class BlockFor>
void SendAll(CollectiveSchedule& schedule, int round, int world, Rank rank, BlockFor chunk_for) {
  for (int step = 1; step < world; ++step) {
    const Rank peer = (rank + step) % world;
    schedule.moves.push_back({round, MoveKind::kSend, peer, chunk_for(peer)});
  }
}

}  // namespace

int CollectiveSchedule::fetches_max() const {
  std::map<int, int> fetches;
  int most = 0;
  for (const Move& move : moves) {
    if (move.kind == MoveKind::kFetch) most = std::max(most, fetches[move.round] += move.count);
  }
  return most;
}

CollectiveSchedule OrderedSchedule(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule{.blocks = world, .moves = {}};
  FetchAll(schedule, world, rank, rank);
  SendAll(schedule, 0, world, rank, [](Rank peer) { return peer; });
  schedule.moves.push_back({0, MoveKind::kSum, rank, rank});
  SendAll(schedule, 1, world, rank, [rank](Rank) { return rank; });
  for (int step = 1; step < world; ++step) {
    const Rank owner = (rank + world - step) % world;
    schedule.moves.push_back({1, MoveKind::kReceive, owner, owner});
  }
  return schedule;
}

CollectiveSchedule ExchangeSchedule(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule{.blocks = 1, .moves = {}};
  FetchAll(schedule, world, rank, 0);
  SendAll(schedule, 0, world, rank, [](Rank) { return 0; });
  schedule.moves.push_back({0, MoveKind::kSum, rank, 0});
  return schedule;
}

CollectiveSchedule RingSchedule(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule{.blocks = world, .moves = {}};
  const Rank next = (rank + 1) % world;
  const Rank previous = (rank + world - 1) % world;
  const auto block = [world, rank](int back) { return (rank + 2 * world - back) % world; };
  for (int round = 0; round < world - 1; ++round) {
    schedule.moves.push_back({round, MoveKind::kFetch, previous, block(round + 2)});
    schedule.moves.push_back({round, MoveKind::kSend, next, block(round + 1)});
    schedule.moves.push_back({round, MoveKind::kSum, rank, block(round + 2)});
  }
  for (int step = 0; step < world - 1; ++step) {
    const int round = world - 1 + step;
    schedule.moves.push_back({round, MoveKind::kSend, next, block(step)});
    schedule.moves.push_back({round, MoveKind::kReceive, previous, block(step + 1)});
  }
  return schedule;
}

int64_t BytesInside(const CollectiveSchedule& schedule, Rank rank, const std::vector<int>& node_of,
                    int64_t n) {
  int64_t bytes = 0;
  for (const Move& move : schedule.moves) {
    if (move.kind != MoveKind::kSend || node_of[move.peer] != node_of[rank]) continue;
    bytes += BlockOf(n, schedule.blocks, move.block, move.count).size() *
             static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

Range BlockOf(int64_t n, int blocks, int block, int count) {
  const Range all{0, (n + kCut - 1) / kCut};
  const int64_t begin = SplitEvenly(all, blocks, block).begin;
  const int64_t end = SplitEvenly(all, blocks, block + count - 1).end;
  return {std::min(n, begin * kCut), std::min(n, end * kCut)};
}

}  // namespace dtrain
