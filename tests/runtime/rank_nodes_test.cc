// Tests which ranks share a node, in real and simulated runs, and how many bytes stay inside a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "framework/comm/collective.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/results/summary.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RankNodesTest : public RunFixture {
 protected:
  RunConfig Config(const std::string& output, const std::vector<std::string>& more,
                   const std::vector<std::string>& hosts = {}) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          "cluster.workers=4"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " DTRAIN_SOURCE_DIR
        "/configs/models/lenet5.yaml}\n"
        "data: {name: digits, train_samples: 256, test_samples: 20}\nbatch: 64\nepochs: 1\n"
        "threads: 1\nsolver: {name: sgd, lr: 0.01}\n",
        "run.yaml", overrides);
    RunConfig config = ReadRunConfig(document);
    if (!hosts.empty()) PlaceOnHosts(hosts, config);
    return config;
  }
  static std::vector<int> NodesIn(const RunConfig& config) {
    const ArenaLayout layout{{{"fc", {9}, {0, 9}, true}}};
    return ExchangeOf(config, layout, {{{0, 9}}}, BoundaryScheduleOf(config, 256)).rank_nodes;
  }
  static double InsideOf(const Summary& summary) {
    const CommunicationSummary& all = *summary.communication;
    return static_cast<double>(all.bytes_inside_nodes.value_or(0)) /
           static_cast<double>(all.bytes_sent);
  }
};

TEST_F(RankNodesTest, WhereHostsAreKnownTheyCount) {
  EXPECT_THAT(NodesIn(Config("run", {"strategy=ps_asp"}, {"a", "a", "b", "b", "a"})),
              ElementsAre(0, 0, 1, 1, 0));
  // Includes the server's rank beside inhad's workers.
  EXPECT_THAT(NodesIn(Config("run", {"strategy=inhad"}, {"a", "a", "b", "b", "a"})),
              ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(
      NodesIn(Config("run", {"strategy=inhad", "cluster.per_node=2"}, {"a", "a", "b", "b", "b"})),
      ElementsAre(0, 0, 1, 1, 1));
  // The config splits one host into several nodes.
  EXPECT_THAT(
      NodesIn(Config("run", {"strategy=inhad", "cluster.per_node=2"}, {"a", "a", "a", "a", "a"})),
      ElementsAre(0, 0, 1, 1, 2));
}

TEST_F(RankNodesTest, ANodeOfTwoHostsIsRefused) {
  const std::vector<std::string> keys = {"strategy=inhad", "cluster.per_node=2"};
  EXPECT_THAT(WhatOf<ConfigError>([&] {
                Config("run", keys, {"a", "a", "b", "c", "c"});
              }),
              HasSubstr("cluster.per_node is 2, but workers 2 and 3 of one node are on hosts b "
                        "and c"));
}

TEST_F(RankNodesTest, ASimulationsDedicatedServersHaveNodesOfTheirOwn) {
  for (const char* strategy :
       {"{name: ps_ssp, servers: 3}", "{name: inhad, servers: 3}", "{name: gssp, servers: 3}"}) {
    const std::string key = fmt::format("strategy={}", strategy);
    EXPECT_THAT(NodesIn(Config("run", {key, "cluster.per_node=2"})),
                ElementsAre(0, 0, 1, 1, 2, 3, 4))
        << strategy;
    EXPECT_THAT(NodesIn(Config("run", {key, "strategy.placement=colocated", "cluster.per_node=4"})),
                ElementsAre(0, 0, 0, 0));
  }
  EXPECT_THAT(NodesIn(Config("run", {"strategy=allreduce", "cluster.per_node=3"})),
              ElementsAre(0, 0, 0, 1));
}

TEST_F(RankNodesTest, ACollectiveThatGoesByNodesHasThemInItsPlan) {
  const auto nodes = [&](const std::vector<std::string>& more,
                         const std::vector<std::string>& hosts) {
    const RunConfig config = Config("run", more, hosts);
    const ExecutionPlan plan = DecidePlan(config, ReadModel(config), 4, 1);
    EXPECT_EQ(plan.node_of, PlanNodesOf(config));
    return plan.node_of;
  };
  const std::vector<std::string> hosts = {"a", "b", "b", "a"};
  EXPECT_THAT(nodes({"collective=ordered"}, hosts), ElementsAre());
  EXPECT_THAT(nodes({"collective=hierarchical"}, hosts), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(nodes({"collective=hierarchical", "cluster.per_node=2"}, hosts),
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(nodes({"collective=hierarchical"}, {}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(nodes({"collective=hierarchical", "strategy=ps_asp"}, {}), ElementsAre())
      << "there is no sum over the workers";
}

TEST_F(RankNodesTest, APlanFilesNodesAreFollowed) {
  ExecutionPlan plan{.workers = 4, .collective = "hierarchical", .node_of = {0, 1, 0, 1}};
  WriteFileDurably(folder_ / "plan.json", ToJson(plan));
  const auto nodes = [&](const std::string& collective) {
    const RunConfig config =
        Config("run", {"collective=" + collective, "plan=" + (folder_ / "plan.json").string()},
               {"a", "a", "b", "b"});
    const ExecutionPlan decided = DecidePlan(config, ReadModel(config), 4, 1);
    EXPECT_EQ(
        ExchangeOf(config, ReadModel(config), decided, BoundaryScheduleOf(config, 256)).plan_nodes,
        decided.node_of);
    return decided.node_of;
  };
  EXPECT_THAT(nodes("hierarchical"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(nodes("ring"), ElementsAre());
}

TEST_F(RankNodesTest, EveryCollectiveTrainsAlikeAndOverlapChangesNoBit) {
  const auto run = [&](const std::string& name, const std::string& overlap) {
    return Run(Config(name + overlap,
                      {"collective=" + name, "overlap_buckets=" + overlap,
                       "strategy.fusion_bytes=20000"},
                      {"a", "a", "b", "b"}))
        .summary;
  };
  std::map<std::string, Summary> serial;
  for (const auto& [name, entry] : CollectiveRegistry::All()) {
    if (entry.rules == nullptr) continue;
    serial[name] = run(name, "false");
    EXPECT_EQ(serial[name].weights_sha256, run(name, "true").weights_sha256) << name;
  }
  const Summary& ordered = serial["ordered"];
  for (const auto& [name, summary] : serial) {
    EXPECT_NEAR(*summary.train_loss, *ordered.train_loss, 1e-3 * *ordered.train_loss) << name;
    EXPECT_EQ(summary.weights_sha256 == ordered.weights_sha256, name == "ordered") << name;
  }
}

// Other nodes change the order of additions; for a plan that does not use nodes, hosts do not matter.
TEST_F(RankNodesTest, NodesDecideTheBitsOfHierarchicalAlone) {
  const auto hash = [&](const char* collective, const std::vector<std::string>& hosts) {
    static int runs = 0;
    return Run(Config(fmt::format("run{}", runs++), {fmt::format("collective={}", collective)},
                      hosts))
        .summary.weights_sha256;
  };
  const std::vector<std::string> blocks = {"a", "a", "b", "b"};
  const std::vector<std::string> turns = {"a", "b", "b", "b"};
  EXPECT_EQ(hash("hierarchical", blocks), hash("hierarchical", blocks));
  EXPECT_NE(hash("hierarchical", blocks), hash("hierarchical", turns));
  EXPECT_EQ(hash("halving_doubling", blocks), hash("halving_doubling", turns));
}

// With `ordered` each rank sends the same to every other one; one of the three others is on its node.
TEST_F(RankNodesTest, AllReduceTellsWhatStaysInside) {
  const RunConfig real = Config("real", {}, {"a", "a", "b", "b"});
  EXPECT_NEAR(InsideOf(Run(real).summary), 1.0 / 3, 1e-3);
  EXPECT_FALSE(Run(Config("apart", {}, {"a", "b", "c", "d"}))
                   .summary.communication->bytes_inside_nodes.has_value());
  const RunConfig sim = Config("sim", {"cluster.per_node=2"});
  EXPECT_NEAR(InsideOf(SimulatedRun(sim, std::nullopt, false).Run()), 1.0 / 3, 1e-3);
  // In a ring, every second rank's neighbour is on its node.
  const RunConfig ring = Config("ring", {"collective=ring"}, {"a", "a", "b", "b"});
  EXPECT_NEAR(InsideOf(Run(ring).summary), 1.0 / 2, 1e-3);
  const RunConfig ring_sim = Config("ring_sim", {"collective=ring", "cluster.per_node=2"});
  EXPECT_NEAR(InsideOf(SimulatedRun(ring_sim, std::nullopt, false).Run()), 1.0 / 2, 1e-3);
}

TEST_F(RankNodesTest, ASimulationWithServersTellsWhatStaysInside) {
  for (const char* name : {"ps_ssp", "gssp"}) {
    const auto inside = [&](const char* placement) {
      const RunConfig config = Config(
          "sim", {fmt::format("strategy={{name: {}, servers: 2, placement: {}}}", name, placement),
                  "cluster.per_node=2"});
      return InsideOf(SimulatedRun(config, std::nullopt, false).Run());
    };
    EXPECT_EQ(inside("dedicated"), 0) << name;
    EXPECT_GT(inside("colocated"), 0.1) << name;
  }
}

}  // namespace
}  // namespace dtrain
