// Tests the keys of the strategies, their effects, and combinations that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/error.h"
#include "tests/strategies/strategies.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& section) {
  return WhatOf<ConfigError>([&] { MakeStrategy(section); });
}

TEST(PsConfig, Defaults) {
  for (const char* name : {"ps_bsp", "ps_ssp", "ps_asp"}) {
    const auto strategy = MakeStrategy(std::string("{name: ") + name + "}");
    EXPECT_EQ(strategy->Place(4), (Placement{.workers = 4, .servers = 1}));
    EXPECT_EQ(strategy->traits().lockstep, std::string(name) == "ps_bsp");
  }
  EXPECT_THAT(
      MakeStrategy("{name: ps_ssp}")->MakeActor(2, {.placement = {2, 1}, .size = 8})->Describe(),
      HasSubstr("bound 3"));
}

TEST(PsConfig, ServersAndPlacement) {
  const auto strategy = MakeStrategy("{name: ps_ssp, servers: 3, placement: colocated}");
  EXPECT_EQ(strategy->Place(4), (Placement{.workers = 4, .servers = 3, .colocated = true}));
}

TEST(PsConfig, OneBucket) {
  const LayerGradients layer_gradients{{{0, 10}, {10, 10}, {10, 25}}};
  for (const char* name : {"ps_asp", "gssp", "inhad"}) {
    EXPECT_EQ(MakeStrategy(std::string("{name: ") + name + "}")->Buckets(layer_gradients),
              (std::vector<Range>{{0, 25}}))
        << name;
  }
}

TEST(PsConfig, NegativeStaleness) {
  EXPECT_EQ(ErrorOf("{name: ps_ssp, staleness: -1}"),
            "run.yaml:1:37: strategy.staleness must be >= 0, found -1\n"
            "1 error; nothing was started");
}

TEST(AllReduceConfig, NegativeFusion) {
  EXPECT_THAT(ErrorOf("{name: allreduce, fusion_bytes: -1}"),
              HasSubstr("strategy.fusion_bytes must be >= 0, found -1"));
}

TEST(PsConfig, NoServer) {
  EXPECT_EQ(ErrorOf("{name: ps_bsp, servers: 0}"),
            "run.yaml:1:35: strategy.servers must be >= 1 and <= 65536, found 0\n"
            "1 error; nothing was started");
}

TEST(PsConfig, UnknownKeys) {
  EXPECT_EQ(ErrorOf("{name: ps_ssp, stalness: 1}"),
            "run.yaml:1:26: unknown key 'stalness' in strategy 'ps_ssp'\n"
            "    did you mean 'staleness'?  allowed: damping, name, placement, scale, servers, "
            "staleness\n"
            "1 error; nothing was started");
  EXPECT_EQ(ErrorOf("{name: ps_bsp, staleness: 1}"),
            "run.yaml:1:26: unknown key 'staleness' in strategy 'ps_bsp'\n"
            "    allowed: name, placement, servers\n"
            "1 error; nothing was started");
}

TEST(PsConfig, UnknownWords) {
  EXPECT_EQ(ErrorOf("{name: ps_asp, scale: two, damping: some, placement: far}"),
            "run.yaml:1:33: strategy.scale has no choice 'two'\n"
            "    allowed: share, one\n"
            "run.yaml:1:47: strategy.damping has no choice 'some'\n"
            "    did you mean 'none'?  allowed: none, inverse\n"
            "run.yaml:1:64: strategy.placement has no choice 'far'\n"
            "    allowed: dedicated, colocated\n"
            "3 errors; nothing was started");
}

TEST(PsConfig, MoreServersThanParameters) {
  const auto strategy = MakeStrategy("{name: ps_bsp, servers: 11}");
  EXPECT_EQ(strategy->Buckets({{{0, 11}}}).size(), 1u);
  try {
    strategy->Buckets({{{0, 10}}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "strategy.servers is 11, but the model has only 10 parameters");
    EXPECT_EQ(error.hint(), "each server needs a part of them");
  }
}

// ------------------------------------------------------------------ combinations

// Returns the errors in a strategy's keys for `workers` workers, one a line.
std::string ErrorsOf(const std::string& section, int workers) {
  std::string text;
  for (const Strategy::KeyError& error : MakeStrategy(section)->Check(workers)) {
    text += error.key + ": " + error.what + "\n";
  }
  return text;
}

TEST(DsspConfig, TheLargerBoundIsNotTheSmallerOne) {
  EXPECT_EQ(ErrorsOf("{name: ps_dssp, staleness: 3, staleness_max: 3}", 2), "");
  EXPECT_EQ(ErrorsOf("{name: ps_dssp, staleness: 16}", 2),
            "staleness_max: strategy.staleness_max is 15, less than strategy.staleness, 16\n");
  EXPECT_THAT(ErrorOf("{name: ps_dssp, staleness_max: -1}"),
              HasSubstr("strategy.staleness_max must be >= 0, found -1"));
  EXPECT_THAT(
      MakeStrategy("{name: ps_dssp}")->MakeActor(2, {.placement = {2, 1}, .size = 8})->Describe(),
      HasSubstr("bound 3 to 15"));
}

TEST(GsspConfig, AGroupHasAServerAndAWorker) {
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 4, groups: 4}", 4), "");
  EXPECT_EQ(MakeStrategy("{name: gssp}")->Place(3).servers, 3);  // not more than workers
  EXPECT_EQ(MakeStrategy("{name: gssp, servers: 1}")->Place(3).servers, 1);
  EXPECT_EQ(MakeStrategy("{name: gssp, servers: auto}")->Place(9).servers, 4);
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 0}", 3), "");  // as configs had it
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 4}", 3),
            "servers: 4 group servers, but 3 workers: a group needs a worker\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 2, groups: 3}", 8),
            "groups: 3 groups, but 2 group servers and 8 workers\n");
}

TEST(GsspConfig, ASynchronousGroupHasNoBound) {
  EXPECT_EQ(ErrorsOf("{name: gssp, inside: bsp}", 4), "");
  EXPECT_EQ(ErrorsOf("{name: gssp, inside: bsp, exchange_every: 8}", 4), "");
  EXPECT_EQ(ErrorsOf("{name: gssp, staleness: 5}", 4), "");
  EXPECT_EQ(ErrorsOf("{name: gssp, inside: bsp, staleness: 5}", 4),
            "staleness: strategy.staleness is 5, but inside: bsp has no bound\n");
}

TEST(GsspConfig, GroupsOfTheStartAreWhole) {
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 2, group_of: [0, 1, 1]}", 3), "");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 2, group_of: [0, 1, 1]}", 4),
            "group_of: group_of has 3 numbers for 4 workers\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 3, group_of: [0, 0, 2]}", 3),
            "group_of: group 1 of group_of has no worker\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 3, group_of: [1, 1, 1]}", 3),
            "group_of: group 0 of group_of has no worker\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 2, group_of: [0, 1, 2]}", 3),
            "group_of: group_of names group 2, but there are 2 group servers, from group 0 on\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 3, groups: 3, group_of: [0, 1, 1]}", 3),
            "group_of: group_of has 2 groups, but groups is 3\n");
  EXPECT_EQ(ErrorsOf("{name: gssp, servers: 3, groups: 1, group_of: [0, 1, 1]}", 3),
            "group_of: group_of has 2 groups, but groups is 1\n");
  EXPECT_THAT(ErrorOf("{name: gssp, group_of: [0, 0.5]}"), HasSubstr("strategy.group_of"));
  EXPECT_THAT(ErrorOf("{name: gssp, group_of: [-1]}"), HasSubstr("strategy.group_of"));
}

TEST(InhadConfig, WordsAndRanges) {
  EXPECT_THAT(ErrorOf("{name: inhad, n: 0}"), HasSubstr("strategy.n must be >= 1, found 0"));
  EXPECT_THAT(ErrorOf("{name: inhad, late: never}"), HasSubstr("allowed: wait, drop, keep"));
  EXPECT_THAT(ErrorOf("{name: inhad, pull_timeout: -1}"), HasSubstr("must be >= 0"));
  EXPECT_THAT(ErrorOf("{name: inhad, s_max: 1000000000}"), HasSubstr("10000"));
}

// With three workers and n = 5 an update has one gradient, and the bound is 2 * 3 + 1; a node then has eight sums
// besides `weights` and `out`.
TEST(InhadConfig, NAboveTheWorkersIsTheWorkers) {
  const auto strategy = MakeStrategy("{name: inhad, n: 5}");
  const ActorSetup setup = SetupFor(*strategy, 3, 8);
  EXPECT_EQ(MakeActors(*strategy, setup)[setup.placement.NodeId(0)]->Vectors().size(), 10u);
  EXPECT_EQ(ErrorsOf("{name: inhad, n: 5}", 5), "");
  EXPECT_EQ(ErrorsOf("{name: inhad, n: 6}", 5),
            "n: n is 6, but there are 5 workers: it counts as 5\n");
}

// Tests the table that `dtrain list` shows and the config check uses.
TEST(Takes, TheTableReadsTheSameFromBothSides) {
  const std::vector<std::string> at_given_density = {"bf16",  "dgc",  "fp16",   "gaussiank",
                                                     "randk", "topk", "trimmed"};
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: ps_ssp}")), at_given_density);
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: ps_dssp}")), at_given_density);
  std::vector<std::string> with_coders = at_given_density;
  with_coders.insert(with_coders.end(), {"ef_signsgd", "powersgd"});
  std::sort(with_coders.begin(), with_coders.end());
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: allreduce}")), with_coders);
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: mgwfbp}")), at_given_density);
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: local_sgd}")), std::vector<std::string>{});
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: easgd}")), std::vector<std::string>{});
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: gssp}")), (std::vector<std::string>{"gdtopk"}));
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: ps_bsp}")), std::vector<std::string>{});
  EXPECT_EQ(CompressorsOf(*MakeStrategy("{name: inhad}")), std::vector<std::string>{});
  for (const auto& [strategy, entry] : StrategyRegistry::All()) {
    const std::vector<std::string> compressors = CompressorsOf(*entry.make());
    for (const std::string& compressor : CompressorRegistry::Names()) {
      const std::vector<std::string> strategies = StrategiesOf(compressor);
      EXPECT_EQ(std::count(compressors.begin(), compressors.end(), compressor),
                std::count(strategies.begin(), strategies.end(), strategy))
          << strategy << ", " << compressor;
    }
  }
}

}  // namespace
}  // namespace dtrain
