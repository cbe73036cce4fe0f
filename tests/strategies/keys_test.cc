// Tests the defaults and ranges of the keys of each strategy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/strategies/strategy.h"

namespace dtrain {
namespace {

using ::testing::UnorderedElementsAre;

// Returns "key = default, range" for the numeric and boolean keys.
std::vector<std::string> KeysOf(const std::string& name) {
  config::Document document = config::Document::Empty();
  config::Reader reader = document.root();
  StrategyRegistry::Get("strategy", name).make()->Configure(reader);
  std::vector<std::string> keys;
  for (const config::KeyHelp& key : document.Keys()) {
    if (key.type == "string") continue;
    keys.push_back(fmt::format("{} = {}{}{}", key.path, key.default_value,
                               key.range.empty() ? "" : ", ", key.range));
  }
  return keys;
}

TEST(Keys, OfParameterServers) {
  EXPECT_THAT(KeysOf("ps_bsp"), UnorderedElementsAre("servers = 1, >= 1 and <= 65536"));
  EXPECT_THAT(KeysOf("ps_asp"),
              UnorderedElementsAre("servers = 1, >= 1 and <= 65536", "prefetch = false"));
  EXPECT_THAT(KeysOf("ps_ssp"),
              UnorderedElementsAre("servers = 1, >= 1 and <= 65536", "staleness = 3, >= 0"));
  EXPECT_THAT(KeysOf("ps_dssp"),
              UnorderedElementsAre("servers = 1, >= 1 and <= 65536", "staleness = 3, >= 0",
                                   "staleness_max = 15, >= 0"));
}

TEST(Keys, OfGssp) {
  EXPECT_THAT(
      KeysOf("gssp"),
      UnorderedElementsAre("servers = auto, >= 0 and <= 65536, or auto", "staleness = 3, >= 0",
                           "exchange_every = 0, >= 0", "groups = auto, >= 0, or auto",
                           "equal_size = false", "group_of = [], >= 0"));
}

TEST(Keys, OfInhad) {
  EXPECT_THAT(
      KeysOf("inhad"),
      UnorderedElementsAre("servers = 1, >= 1 and <= 65536", "n = 1, >= 1",
                           "s_max = 0, >= 0 and <= 10000", "lockstep = false", "pipelined = false",
                           "in_interval = 0, >= 0", "pull_timeout = 30, >= 0"));
}

TEST(Keys, OfSynchronousStrategies) {
  for (const char* name : {"naive", "wfbp", "single", "mgwfbp"}) {
    EXPECT_THAT(KeysOf(name), UnorderedElementsAre()) << name;
  }
  EXPECT_THAT(KeysOf("allreduce"), UnorderedElementsAre("fusion_bytes = 67108864, >= 0"));
}

// Keys that would make another protocol are not among them.
TEST(Keys, ThatMayChangeWhenARunGoesOn) {
  const auto may_change = [](const std::string& name) {
    std::vector<std::string> keys;
    for (const char* key :
         {"servers",   "placement",   "staleness",   "staleness_max",  "damping",  "scale",
          "prefetch",  "inside",      "exchange",    "exchange_every", "groups",   "grouping",
          "group_of",  "n",           "s_max",       "late",           "lockstep", "broadcast",
          "pipelined", "in_interval", "pull_timeout"}) {
      if (StrategyRegistry::Get("strategy", name).make()->MayChange(key)) keys.push_back(key);
    }
    return keys;
  };
  EXPECT_THAT(may_change("ps_bsp"), UnorderedElementsAre());
  EXPECT_THAT(may_change("ps_ssp"), UnorderedElementsAre("staleness", "damping"));
  EXPECT_THAT(may_change("ps_dssp"), UnorderedElementsAre("damping"));
  EXPECT_THAT(may_change("ps_asp"), UnorderedElementsAre("damping"));
  EXPECT_THAT(may_change("gssp"), UnorderedElementsAre("staleness", "exchange_every"));
  EXPECT_THAT(may_change("inhad"), UnorderedElementsAre("in_interval", "pull_timeout", "scale"));
}

}  // namespace
}  // namespace dtrain
