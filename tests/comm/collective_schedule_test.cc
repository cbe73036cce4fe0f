#include "framework/comm/collective_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/comm/collective.h"
#include "framework/comm/double_trees.h"
#include "framework/comm/halving_doubling.h"
#include "framework/comm/hierarchical.h"
#include "tests/comm/schedule_checker.h"
#include "tests/comm/schedule_traffic.h"

namespace dtrain {
namespace {

std::vector<int> WorldsUpTo(int most, std::vector<int> more) {
  for (int world = 1; world <= most; ++world) more.push_back(world);
  return more;
}

TEST(CollectiveSchedule, EveryScheduleGivesEveryRankEverySumOnce) {
  for (const auto& [name, entry] : CollectiveRegistry::All()) {
    if (entry.rules == nullptr) continue;
    for (const int world : WorldsUpTo(33, {48, 64, 97, 128})) {
      const CollectiveScheduler scheduler = entry.rules(world).scheduler;
      EXPECT_EQ(ScheduleChecker(scheduler, world).Fault(false), "") << name << ", " << world;
    }
  }
}

// The small schedule of `ordered` gives the bits of the canonical sum.
TEST(CollectiveSchedule, SmallSchedulesGiveEveryRankTheCanonicalSum) {
  for (const auto& [name, entry] : CollectiveRegistry::All()) {
    if (entry.rules == nullptr || entry.rules(2).small_scheduler == nullptr) continue;
    for (const int world : WorldsUpTo(17, {})) {
      EXPECT_EQ(ScheduleChecker(entry.rules(world).small_scheduler, world).Fault(true), "") << name;
    }
  }
}

TEST(CollectiveSchedule, OrderedGivesEveryRankTheCanonicalSum) {
  for (int world = 2; world <= 33; ++world) {
    EXPECT_EQ(ScheduleChecker(OrderedSchedule, world).Fault(true), "") << world << " ranks";
  }
}

TEST(CollectiveSchedule, ExchangeGivesEveryRankTheCanonicalSum) {
  for (int world = 2; world <= 33; ++world) {
    EXPECT_EQ(ScheduleChecker(ExchangeSchedule, world).Fault(true), "") << world << " ranks";
  }
}

TEST(CollectiveSchedule, RingIsNotCanonicalAndTheCheckerSeesIt) {
  EXPECT_NE(ScheduleChecker(RingSchedule, 3).Fault(true), "");
}

// Returns maps of rank to node: nodes of equal size, of several sizes, with ranks in turn, and with a single rank.
std::vector<std::vector<int>> NodeMapsOf(int world) {
  std::vector<std::vector<int>> maps(6);
  for (Rank rank = 0; rank < world; ++rank) {
    maps[0].push_back(0);
    maps[1].push_back(rank / 2);
    maps[2].push_back(rank / 4);
    maps[3].push_back(rank % 3);
    maps[4].push_back(rank == world / 2 ? world - 1 : rank * rank % 7 % world);
    maps[5].push_back((world - 1 - rank) / 5);
  }
  return maps;
}

TEST(CollectiveSchedule, HierarchicalGivesEveryRankEverySumOnceOnAnyNodes) {
  for (const int world : WorldsUpTo(17, {24, 30, 33, 64, 96})) {
    for (const std::vector<int>& nodes : NodeMapsOf(world)) {
      EXPECT_EQ(ScheduleChecker(HierarchicalSchedule, world, nodes).Fault(false), "")
          << testing::PrintToString(nodes);
    }
  }
}

// Through the NIC of each of N nodes pass 2 (N-1)/N n bytes in each direction, whatever its number of ranks.
TEST(CollectiveSchedule, HierarchicalSendsEachVectorOnceBetweenNodes) {
  for (const int per_node : {1, 2, 3, 8}) {
    for (const int nodes : {2, 4, 8}) {
      const int world = nodes * per_node;
      std::vector<int> node_of;
      for (Rank rank = 0; rank < world; ++rank) node_of.push_back(rank / per_node);
      const int64_t n = 16 * 24 * nodes;
      int64_t outside = 0;  // bytes that cross the NIC of node 1
      for (Rank rank = per_node; rank < 2 * per_node; ++rank) {
        const CollectiveSchedule schedule = HierarchicalSchedule(world, rank, node_of);
        outside += TrafficOf(schedule, n).bytes_sent - BytesInside(schedule, rank, node_of, n);
        EXPECT_EQ(TrafficOf(schedule, n).rounds,
                  HalvingDoublingRounds(nodes) + (per_node > 1 ? 2 : 0));
      }
      EXPECT_EQ(outside, 2 * (nodes - 1) * n / nodes * 4) << nodes << " nodes of " << per_node;
    }
  }
}

// If one node has a single rank, each of the other nodes has one owner.
TEST(CollectiveSchedule, HierarchicalHasAsManyOwnersANodeAsTheSmallestNodeHasRanks) {
  const std::vector<int> nodes = {0, 0, 0, 1, 1, 1, 2};
  for (const Rank idle : {1, 2, 4, 5}) {
    const ScheduleTraffic traffic = TrafficOf(HierarchicalSchedule(7, idle, nodes), 16 * 12);
    EXPECT_EQ(traffic.messages, 1) << idle;
    EXPECT_EQ(traffic.additions, 0) << idle;
  }
  EXPECT_EQ(HierarchicalSchedule(4, 0, std::vector<int>{0, 1, 2, 3}).moves.size(),
            HalvingDoublingSchedule(4, 0).moves.size());
}

TEST(CollectiveSchedule, HalvingDoublingFollowsTheFormulas) {
  for (int world = 1; world <= 64; ++world) {
    const int core = HalvingDoublingBlocks(world);
    const int64_t n = 16 * 3 * core;
    const int log = static_cast<int>(std::lround(std::log2(core)));
    int folded = 0;
    for (Rank rank = 0; rank < world; ++rank) {
      const ScheduleTraffic traffic = TrafficOf(HalvingDoublingSchedule(world, rank), n);
      if (traffic.messages == 1 && world > 2) {
        ++folded;
        EXPECT_EQ(traffic.bytes_sent, n * 4);
        continue;
      }
      const bool unfolds = traffic.messages > 2 * log;
      EXPECT_EQ(traffic.messages, 2 * log + unfolds);
      EXPECT_EQ(traffic.bytes_sent, 2 * (core - 1) * n / core * 4 + unfolds * n * 4);
      EXPECT_EQ(traffic.bytes_received, traffic.bytes_sent);
      EXPECT_EQ(traffic.additions, (core - 1) * n / core + unfolds * n);
    }
    EXPECT_EQ(folded, world - core) << world << " ranks";
  }
}

// Each rank is inside one tree and a leaf of the other (with an odd number, rank 0 is on the edge of both): no rank
// moves more than 2 n, in 2 ceil(log2 P) rounds.
TEST(CollectiveSchedule, DoubleTreesKeepAllRanksBusyAlike) {
  constexpr int64_t kFloats = 16 * 10;
  for (int world = 2; world <= 65; ++world) {
    int log = 0;
    while ((1 << log) < world) ++log;
    for (Rank rank = 0; rank < world; ++rank) {
      const CollectiveSchedule schedule = DoubleTreesSchedule(world, rank);
      const ScheduleTraffic traffic = TrafficOf(schedule, kFloats);
      EXPECT_LE(traffic.bytes_sent, 2 * kFloats * 4) << rank << " of " << world;
      EXPECT_LE(traffic.bytes_received, 2 * kFloats * 4) << rank << " of " << world;
      EXPECT_LE(traffic.additions, kFloats) << rank << " of " << world;
      EXPECT_LE(traffic.rounds, 2 * log);
    }
  }
}

// The other tests rely on the checker alone, so it must find each kind of fault.
CollectiveSchedule WithoutLastMove(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = OrderedSchedule(world, rank);
  if (rank == 1) schedule.moves.pop_back();
  return schedule;
}
CollectiveSchedule WithoutASend(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = OrderedSchedule(world, rank);
  if (rank == 1) {
    std::erase_if(schedule.moves,
                  [](const Move& m) { return m.kind == MoveKind::kSend && m.round == 0; });
  }
  return schedule;
}
CollectiveSchedule WithoutTheSum(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = OrderedSchedule(world, rank);
  std::erase_if(schedule.moves, [](const Move& m) { return m.kind == MoveKind::kSum; });
  return schedule;
}
CollectiveSchedule FetchingBackwards(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = OrderedSchedule(world, rank);
  std::reverse(schedule.moves.begin(), schedule.moves.begin() + world - 1);
  return schedule;
}

CollectiveSchedule SendingWhatItReceives(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = RingSchedule(world, rank);
  for (Move& move : schedule.moves) move.round = std::min(move.round, world - 1);
  return schedule;
}
CollectiveSchedule FetchingForNothing(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = OrderedSchedule(world, rank);
  schedule.moves.insert(schedule.moves.begin(), {0, MoveKind::kSend, (rank + 1) % world, 0});
  schedule.moves.push_back({1, MoveKind::kFetch, (rank + world - 1) % world, 0});
  return schedule;
}
// The rank sends the half that it should keep.
CollectiveSchedule SendingTheWrongRun(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = HalvingDoublingSchedule(world, rank);
  if (rank != 1) return schedule;
  for (Move& move : schedule.moves) {
    if (move.kind == MoveKind::kSend && move.round == 0) move.block = world / 2 - move.block;
  }
  return schedule;
}
// A sum waits for its inputs; sends of the same rank after it come too late for the other ranks.
CollectiveSchedule SendingBehindTheSum(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule = HalvingDoublingSchedule(world, rank);
  std::stable_partition(schedule.moves.begin(), schedule.moves.end(),
                        [](const Move& m) { return m.round == 0 && m.kind != MoveKind::kSend; });
  return schedule;
}

TEST(CollectiveSchedule, CheckerSeesFaults) {
  EXPECT_NE(ScheduleChecker(WithoutLastMove, 4).Fault(true), "");
  EXPECT_EQ(ScheduleChecker(WithoutASend, 4).Fault(true), "rank 0: waits forever");
  EXPECT_EQ(ScheduleChecker(WithoutTheSum, 4).Fault(false), "rank 0: not every rank once: 0");
  EXPECT_THAT(ScheduleChecker(FetchingBackwards, 4).Fault(true),
              ::testing::EndsWith("does not fetch in rank order"));
  EXPECT_THAT(ScheduleChecker(SendingWhatItReceives, 4).Fault(false), ::testing::Ne(""));
  EXPECT_THAT(ScheduleChecker(FetchingForNothing, 4).Fault(true), ::testing::Ne(""));
  EXPECT_THAT(ScheduleChecker(SendingTheWrongRun, 4).Fault(false), ::testing::Ne(""));
  EXPECT_THAT(ScheduleChecker(SendingBehindTheSum, 4).Fault(false),
              ::testing::EndsWith("waits forever"));
}

// 2 (P-1)/P n in each direction; 2 rounds with 2 (P-1) messages, or 2 (P-1) rounds with one message each.
TEST(CollectiveSchedule, CostsFollowTheFormulas) {
  for (int world = 2; world <= 33; ++world) {
    const int64_t n = 16 * 7 * world;
    const int64_t bytes = 2 * (world - 1) * n / world * 4;
    for (Rank rank = 0; rank < world; ++rank) {
      for (const CollectiveScheduler scheduler : {OrderedSchedule, RingSchedule}) {
        const ScheduleTraffic cost = TrafficOf(scheduler(world, rank, {}), n);
        EXPECT_EQ(cost.bytes_sent, bytes);
        EXPECT_EQ(cost.bytes_received, bytes);
        EXPECT_EQ(cost.messages, 2 * (world - 1));
        EXPECT_EQ(cost.additions, (world - 1) * n / world);
      }
      EXPECT_EQ(TrafficOf(OrderedSchedule(world, rank), n).rounds, 2);
      EXPECT_EQ(TrafficOf(RingSchedule(world, rank), n).rounds, 2 * (world - 1));
      const ScheduleTraffic exchange = TrafficOf(ExchangeSchedule(world, rank), n);
      EXPECT_EQ(exchange.rounds, 1);
      EXPECT_EQ(exchange.bytes_sent, (world - 1) * n * 4);
      EXPECT_EQ(exchange.additions, (world - 1) * n);
    }
  }
}

TEST(CollectiveSchedule, EmptyBlocksCostNothing) {
  const ScheduleTraffic owner =
      TrafficOf(OrderedSchedule(4, 0), 5);  // the whole vector is in rank 0's block
  EXPECT_EQ(owner.bytes_received, 3 * 5 * 4);
  EXPECT_EQ(owner.bytes_sent, 3 * 5 * 4);
  const ScheduleTraffic other = TrafficOf(OrderedSchedule(4, 2), 5);
  EXPECT_EQ(other.messages, 1);
  EXPECT_EQ(other.bytes_sent, 5 * 4);
  EXPECT_EQ(TrafficOf(OrderedSchedule(4, 2), 0).rounds, 0);
}

TEST(CollectiveSchedule, PiecesCoverTheVectorAtCacheLines) {
  for (const int64_t n : {0, 1, 15, 16, 17, 1000, 4096, 1'000'003}) {
    for (const int blocks : {1, 2, 3, 5, 8, 33}) {
      int64_t at = 0;
      for (int block = 0; block < blocks; ++block) {
        const Range range = BlockOf(n, blocks, block);
        EXPECT_EQ(range.begin, at);
        EXPECT_TRUE(range.begin % 16 == 0 || range.begin == n);
        EXPECT_LE(range.size(), BlockOf(n, blocks, 0).size());
        at = range.end;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST(CollectiveSchedule, ScratchIsWhatOneRoundFetches) {
  EXPECT_EQ(OrderedSchedule(5, 2).fetches_max(), 4);
  EXPECT_EQ(RingSchedule(5, 2).fetches_max(), 1);
  EXPECT_EQ(ExchangeSchedule(5, 2).fetches_max(), 4);
  EXPECT_EQ(HalvingDoublingSchedule(8, 2).fetches_max(), 4);  // half of the vector
  EXPECT_EQ(HalvingDoublingSchedule(9, 1).fetches_max(), 8);  // the vector of a folded rank
  EXPECT_EQ(DoubleTreesSchedule(8, 2).fetches_max(), 2);
}

}  // namespace
}  // namespace dtrain
