// Tests configs/clusters, and how a cluster is found by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "framework/config/reader.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/setup/locate_model.h"
#include "framework/setup/run_config.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kQuickstart[] = DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml";

RunConfig Over(const fs::path& cluster, const std::vector<std::string>& overrides = {}) {
  config::Document document =
      config::Document::FromFile(kQuickstart, overrides, {cluster.string(), "cluster"});
  return ReadRunConfig(document);
}

TEST(ClusterFiles, EveryOneThatIsShippedIsOf16WorkersAndSaysWhatItIs) {
  int read = 0;
  for (const auto& [name, path] : NamedClusters(kQuickstart)) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ReadFile(path), StartsWith("# "));
    const RunConfig run = Over(path);
    EXPECT_EQ(run.workers, 16);
    EXPECT_EQ(run.cluster.SlowdownOf(16).size(), 16u);
    if (name.starts_with("hetero_")) {
      EXPECT_EQ(run.cluster.step_seconds, 0.2);
      EXPECT_EQ(run.cluster.jitter, 0.1);
    }
    ++read;
  }
  EXPECT_GE(read, 20);
}

// hetero_1_2_3_4 has the factors in blocks; ..._interleaved has the same workers in another order.
TEST(ClusterFiles, AHeterogeneityClassIsWhatItsNameSays) {
  const std::vector<double> blocks =
      Over(LocateCluster("hetero_1_1.3_1.6_2", kQuickstart)).cluster.SlowdownOf(16);
  EXPECT_THAT(blocks, ElementsAre(1, 1, 1, 1, 1.3, 1.3, 1.3, 1.3, 1.6, 1.6, 1.6, 1.6, 2, 2, 2, 2));
  for (const auto& [name, path] : NamedClusters(kQuickstart)) {
    const std::string ending = "_interleaved";
    if (!name.ends_with(ending)) continue;
    const std::string in_blocks = name.substr(0, name.size() - ending.size());
    const std::vector<double> turns = Over(path).cluster.SlowdownOf(16);
    std::vector<double> sorted = turns;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, Over(LocateCluster(in_blocks, kQuickstart)).cluster.SlowdownOf(16)) << name;
    EXPECT_NE(sorted, turns) << name;
  }
}

TEST(ClusterFiles, SettingsOfTheCommandLineCountMore) {
  const fs::path tianhe = LocateCluster("tianhe2", kQuickstart);
  const RunConfig run = Over(tianhe, {"cluster.workers=8"});
  EXPECT_EQ(run.workers, 8);
  EXPECT_EQ(run.cluster.per_node(), 4);
  EXPECT_EQ(run.cluster.network.between_nodes.latency_us, 9);
}

TEST(ClusterFiles, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto error = [](const std::string& name) {
    try {
      LocateCluster(name, kQuickstart);
    } catch (const ConfigError& caught) {
      return std::string(caught.what()) + " | " + caught.hint();
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("tianhe"), HasSubstr("there is no cluster 'tianhe' | did you mean 'tianhe2'?"));
  EXPECT_THAT(error("moon"), HasSubstr("hetero_1_1.3_1.6_2, "));
  EXPECT_THAT(error("no/such.yaml"), HasSubstr("there is no cluster file 'no/such.yaml'"));
  const std::string path = LocateCluster("tianhe2", kQuickstart).string();
  EXPECT_EQ(LocateCluster(path, ""), path);
}

}  // namespace
}  // namespace dtrain
