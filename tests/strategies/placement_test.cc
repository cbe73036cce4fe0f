// Tests that every actor is on one rank, in the places that placement.h documents.
#include "framework/strategies/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

using ::testing::ElementsAre;

std::vector<Rank> RanksOf(const Placement& placement) {
  std::vector<Rank> ranks;
  for (ActorId id = 0; id < placement.actors(); ++id) ranks.push_back(placement.RankOf(id));
  return ranks;
}

std::vector<std::string> RolesOf(const Placement& placement) {
  std::vector<std::string> roles;
  for (Rank rank = 0; rank < placement.ranks(); ++rank) roles.push_back(placement.RoleOf(rank));
  return roles;
}

// Checks that each actor is only on the rank given by RankOf, in ascending order, and has its kind.
void ExpectConsistent(const Placement& placement) {
  int seen = 0;
  for (Rank rank = 0; rank < placement.ranks(); ++rank) {
    ActorId before = -1;
    for (const ActorId id : placement.ActorsOf(rank)) {
      EXPECT_EQ(placement.RankOf(id), rank);
      EXPECT_GT(id, before);
      before = id;
      ++seen;
    }
  }
  EXPECT_EQ(seen, placement.actors());
  ActorId id = 0;
  const std::pair<ActorKind, int> kinds[] = {{ActorKind::kWorker, placement.workers},
                                             {ActorKind::kServer, placement.servers},
                                             {ActorKind::kNode, placement.nodes()},
                                             {ActorKind::kCoordinator, placement.coordinator}};
  for (const auto& [kind, count] : kinds) {
    for (int number = 0; number < count; ++number, ++id) {
      EXPECT_EQ(placement.KindOf(id), kind) << id;
      EXPECT_EQ(placement.NumberOf(id), number) << id;
    }
  }
  EXPECT_EQ(id, placement.actors());
}

TEST(Placement, WorkersAlone) {
  const Placement placement{.workers = 3};
  EXPECT_THAT(RolesOf(placement), ElementsAre("worker 0", "worker 1", "worker 2"));
  ExpectConsistent(placement);
}

TEST(Placement, DedicatedServersComeBehindTheWorkers) {
  const Placement placement{.workers = 2, .servers = 3};
  EXPECT_THAT(RanksOf(placement), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(placement.RoleOf(4), "server 2");
  ExpectConsistent(placement);
}

TEST(Placement, ColocatedServersSpreadOverTheWorkers) {
  const Placement placement{.workers = 8, .servers = 3, .colocated = true};
  EXPECT_EQ(placement.ranks(), 8);
  EXPECT_EQ(placement.RankOf(placement.ServerId(0)), 0);
  EXPECT_EQ(placement.RankOf(placement.ServerId(1)), 2);
  EXPECT_EQ(placement.RankOf(placement.ServerId(2)), 5);
  EXPECT_EQ(placement.RoleOf(5), "worker 5, server 2");
  ExpectConsistent(placement);
}

TEST(Placement, MoreColocatedServersThanWorkersShareRanks) {
  const Placement placement{.workers = 2, .servers = 4, .colocated = true};
  EXPECT_THAT(RolesOf(placement),
              ElementsAre("worker 0, server 0, server 1", "worker 1, server 2, server 3"));
  ExpectConsistent(placement);
}

TEST(Placement, ANodeLivesOnItsLowestWorkersRank) {
  // Ranks are assigned to the nodes in turn.
  const Placement placement{.workers = 4, .servers = 1, .node_of = {0, 1, 0, 1}};
  EXPECT_EQ(placement.nodes(), 2);
  EXPECT_EQ(placement.ranks(), 5);
  EXPECT_THAT(RolesOf(placement), ElementsAre("worker 0, node 0", "worker 1, node 1", "worker 2",
                                              "worker 3", "server 0"));
  EXPECT_EQ(placement.RankOf(placement.NodeId(1)), 1);
  ExpectConsistent(placement);
}

TEST(Placement, TheCoordinatorIsBesideServerZero) {
  const Placement dedicated{.workers = 3, .servers = 2, .coordinator = true};
  EXPECT_EQ(dedicated.ranks(), 5);
  EXPECT_EQ(dedicated.RankOf(dedicated.CoordinatorId()), 3);
  EXPECT_EQ(dedicated.RoleOf(3), "server 0, coordinator");
  ExpectConsistent(dedicated);
  const Placement colocated{
      .workers = 3, .servers = 2, .colocated = true, .node_of = {0, 0, 1}, .coordinator = true};
  EXPECT_THAT(RolesOf(colocated), ElementsAre("worker 0, server 0, node 0, coordinator",
                                              "worker 1, server 1", "worker 2, node 1"));
  ExpectConsistent(colocated);
  const Placement alone{.workers = 2, .coordinator = true};
  EXPECT_EQ(alone.RoleOf(0), "worker 0, coordinator");
  ExpectConsistent(alone);
}

TEST(Placement, ApartEveryActorHasItsOwnRank) {
  const Placement placement{.workers = 3,
                            .servers = 2,
                            .colocated = true,
                            .node_of = {0, 0, 1},
                            .coordinator = true,
                            .apart = true};
  EXPECT_EQ(placement.ranks(), 8);
  for (ActorId id = 0; id < placement.actors(); ++id) EXPECT_EQ(placement.RankOf(id), id);
  ExpectConsistent(placement);
}

TEST(Placement, ShardsCoverTheArenaAndReplicasHaveAllOfIt) {
  Placement placement{.workers = 1, .servers = 3};
  EXPECT_EQ(placement.ShardOf(0, 10), (Range{0, 4}));
  EXPECT_EQ(placement.ShardOf(1, 10), (Range{4, 7}));
  EXPECT_EQ(placement.ShardOf(2, 10), (Range{7, 10}));
  placement.replicated = true;
  for (int server = 0; server < 3; ++server) {
    EXPECT_EQ(placement.ShardOf(server, 10), (Range{0, 10}));
  }
}

}  // namespace
}  // namespace dtrain
