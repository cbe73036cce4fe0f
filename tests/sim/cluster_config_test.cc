#include "framework/cluster/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterConfig Finish(config::Document& document) {
  config::Reader reader = document.root().Section("cluster");
  const int64_t workers = reader.Int("workers", 1).Min(1);
  const ClusterConfig cluster = ReadCluster(reader, static_cast<int>(workers));
  document.Finish();
  return cluster;
}

ClusterConfig Read(const std::string& cluster) {
  auto document = config::Document::FromText("cluster: " + cluster + "\n", "run.yaml");
  return Finish(document);
}

std::string ErrorOf(const std::string& cluster) {
  return WhatOf<ConfigError>([&] { Read(cluster); });
}

// The effective config prints every key: a key that was not given must read back as its default.
TEST(ClusterConfig, NodesAreGivenWhereTheyAreNotAutomatic) {
  EXPECT_FALSE(Read("{per_node: auto}").per_node_given);
  EXPECT_FALSE(Read("{per_node: 0}").per_node_given);
  EXPECT_TRUE(Read("{per_node: 1}").per_node_given);
}

TEST(ClusterConfig, HasDefaults) {
  const ClusterConfig cluster = Read("{}");
  EXPECT_EQ(cluster.per_node(), 1);
  EXPECT_FALSE(cluster.per_node_given);
  EXPECT_EQ(cluster.step_seconds, 0);
  EXPECT_THAT(cluster.slowdown, ElementsAre(1));
  EXPECT_EQ(cluster.jitter, 0);
  EXPECT_EQ(cluster.pauses.probability, 0);
  EXPECT_EQ(cluster.gflops, 100);
  EXPECT_EQ(cluster.memory_gbyte_s, 8);
  EXPECT_EQ(cluster.network, NetworkModel());
  EXPECT_EQ(cluster.network.between_nodes.bandwidth_gbit_s, 10);
  EXPECT_EQ(cluster.network.between_nodes.latency_us, 50);
  EXPECT_EQ(cluster.network.queue, NetworkModel::Queue::kFair);
}

TEST(ClusterConfig, DeathsAreOfAWorkerOrANodeAtATimeOrAStep) {
  const ClusterConfig cluster = Read(
      "{deaths: [{worker: 5, at_step: 100}, {node: 2, at_seconds: 1.5}, {worker: 0, at_seconds: "
      "0}]}");
  ASSERT_EQ(cluster.deaths.size(), 3u);
  EXPECT_EQ(cluster.deaths[0].worker, 5);
  EXPECT_EQ(cluster.deaths[0].at_step, 100);
  EXPECT_EQ(cluster.deaths[1].Who(), "node 2");
  EXPECT_EQ(cluster.deaths[1].at_seconds, 1.5);
  EXPECT_EQ(cluster.deaths[1].at_step, Death::kNone);
  EXPECT_EQ(cluster.deaths[2].Who(), "worker 0");
}

TEST(ClusterConfig, DeathsThatSayTooMuchOrTooLittleAreNamed) {
  EXPECT_THAT(ErrorOf("{deaths: [{worker: 1}]}"), HasSubstr("at_seconds"));
  EXPECT_THAT(ErrorOf("{deaths: [{at_step: 1}]}"), HasSubstr("worker"));
  EXPECT_THAT(ErrorOf("{deaths: [{worker: 1, node: 1, at_step: 1}]}"),
              HasSubstr("run.yaml:1:32: either a worker dies or a node"));
  EXPECT_THAT(ErrorOf("{deaths: [{worker: 1, at_seconds: 1, at_step: 1}]}"),
              HasSubstr("a death has one time"));
  EXPECT_THAT(ErrorOf("{deaths: [{node: 1, at_step: 1}]}"),
              HasSubstr("a node has no steps of its own"));
  EXPECT_THAT(ErrorOf("{deaths: [{workr: 1, at_step: 1}]}"), HasSubstr("unknown key 'workr'"));
}

TEST(ClusterConfig, ATrainingRunRefusesDeathsWithTheirPlace) {
  const std::vector<Death> deaths = Read("{deaths: [{node: 2, at_seconds: 12}]}").deaths;
  EXPECT_EQ(WhatOf<ConfigError>([&] { RefuseDeaths(deaths); }),
            "run.yaml:1:20: node 2 dies in a simulation only: over MPI a lost rank ends the run");
  RefuseDeaths({});
}

TEST(ClusterConfig, EveryKeyIsRead) {
  const ClusterConfig cluster = Read(
      "{workers: 8, per_node: 4, step_seconds: 0.2, slowdown: [1, 1.3, 1.6, 2], jitter: 0.1, "
      "pauses: {probability: 0.01, seconds: 3}, gflops: 50, memory_gbyte_s: 4, "
      "network: {bandwidth_gbit_s: 1, latency_us: 30, bucket_bytes: 1000, line_gbit_s: 40, "
      "queue: fifo, share_deviation: 0.3, message_overhead_us: 5, inside: {bandwidth_gbit_s: 60, "
      "latency_us: 0.5}}}");
  EXPECT_EQ(cluster.per_node(), 4);
  EXPECT_EQ(cluster.step_seconds, 0.2);
  EXPECT_THAT(cluster.slowdown, ElementsAre(1, 1.3, 1.6, 2));
  EXPECT_EQ(cluster.jitter, 0.1);
  EXPECT_EQ(cluster.pauses.probability, 0.01);
  EXPECT_EQ(cluster.pauses.seconds, 3);
  EXPECT_EQ(cluster.gflops, 50);
  EXPECT_EQ(cluster.memory_gbyte_s, 4);
  const NetworkModel expected{.between_nodes = {.bandwidth_gbit_s = 1,
                                                .latency_us = 30,
                                                .bucket_bytes = 1000,
                                                .line_gbit_s = 40},
                              .inside_node = {.bandwidth_gbit_s = 60, .latency_us = 0.5},
                              .per_node = 4,

                              .queue = NetworkModel::Queue::kFifo,
                              .share_deviation = 0.3,
                              .message_overhead_us = 5};
  EXPECT_EQ(cluster.network, expected);
}

TEST(ClusterConfig, SlowdownIsForWorkersOrBlocks) {
  EXPECT_THAT(Read("{workers: 4, slowdown: [1, 1, 1, 4]}").SlowdownOf(4), ElementsAre(1, 1, 1, 4));
  EXPECT_THAT(Read("{workers: 6, slowdown: [1, 2]}").SlowdownOf(6), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(Read("{workers: 3}").SlowdownOf(3), ElementsAre(1, 1, 1));
}

TEST(ClusterConfig, SlowdownMustFitTheWorkers) {
  EXPECT_THAT(ErrorOf("{workers: 4, slowdown: [1, 2, 3]}"),
              HasSubstr("run.yaml:1:23: 3 slowdown factors cannot be shared out to 4 workers "
                        "(line 1)\n    one factor a worker, or one a block of workers of equal "
                        "size\n1 error; nothing was started"));
  EXPECT_THAT(ErrorOf("{workers: 1, slowdown: [1, 2]}"),
              HasSubstr("2 slowdown factors cannot be shared out to 1 worker (line 1)"));
  EXPECT_THAT(ErrorOf("{slowdown: []}"), HasSubstr("run.yaml:1:11: slowdown names no factor\n"));
}

TEST(ClusterConfig, ALauncherMayStillDecideHowManyWorkers) {
  const ClusterConfig cluster = Read("{slowdown: [1, 1, 1, 4]}");
  EXPECT_EQ(cluster.SlowdownOf(8).size(), 8u);
  try {
    cluster.SlowdownOf(6);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "4 slowdown factors cannot be shared out to 6 workers");
    EXPECT_EQ(error.hint(), "one factor a worker, or one a block of workers of equal size");
  }
}

TEST(ClusterConfig, RangesAreChecked) {
  const std::string error = ErrorOf(
      "{per_node: -1, step_seconds: -1, slowdown: [1, 0], jitter: -0.1, "
      "pauses: {probability: 1.5, seconds: -1}, gflops: 0, memory_gbyte_s: 0, "
      "network: {bandwidth_gbit_s: 0, latency_us: -1, bucket_bytes: -1, queue: lifo}}");
  for (const char* line : {
           "cluster.per_node must be >= 0 and <= 1048576, found -1",
           "cluster.step_seconds must be >= 0, found -1",
           "cluster.slowdown[1] must be > 0, found 0",
           "cluster.jitter must be >= 0, found -0.1",
           "cluster.pauses.probability must be >= 0 and <= 1, found 1.5",
           "cluster.pauses.seconds must be >= 0, found -1",
           "cluster.gflops must be > 0, found 0",
           "cluster.memory_gbyte_s must be > 0, found 0",
           "cluster.network.bandwidth_gbit_s must be > 0, found 0",
           "cluster.network.latency_us must be >= 0, found -1",
           "cluster.network.bucket_bytes must be >= 0, found -1",
           "cluster.network.queue has no choice 'lifo'",
           "12 errors; nothing was started",
       }) {
    EXPECT_THAT(error, HasSubstr(line));
  }
}

TEST(ClusterConfig, TheLineIsNoSlowerThanTheBandwidth) {
  EXPECT_THAT(ErrorOf("{network: {bandwidth_gbit_s: 5, bucket_bytes: 10, line_gbit_s: 1}}"),
              HasSubstr("run.yaml:1:60: line rate 1 is below the bandwidth 5 (line 1)\n"));
  EXPECT_EQ(ErrorOf("{network: {bandwidth_gbit_s: 5, line_gbit_s: 5}}"), "no error");
}

TEST(ClusterConfig, TheEffectiveConfigReadsTheSame) {
  auto first = config::Document::FromText(
      "cluster: {workers: 4, slowdown: [1, 4], network: {queue: fifo}}\n", "run.yaml");
  Finish(first);
  auto second = config::Document::FromText(first.EffectiveYaml(), "again.yaml");
  const ClusterConfig again = Finish(second);
  EXPECT_EQ(second.EffectiveYaml(), first.EffectiveYaml());
  EXPECT_THAT(again.slowdown, ElementsAre(1, 4));
}

}  // namespace
}  // namespace dtrain
