// Whole runs with a compressor: the config, what is learnt, and what the summary says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompressRunTest : public RunFixture {
 protected:
  // LeNet-5 on 400 digits.
  RunConfig Config(const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          "strategy.name=ps_asp",
                                          "strategy.placement=colocated",
                                          "data.train_samples=400",
                                          "data.test_samples=300",
                                          "epochs=3",
                                          "threads=1"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " DTRAIN_SOURCE_DIR
        "/configs/models/lenet5.yaml}\n"
        "data: {name: digits}\nbatch: 64\nsolver: {name: sgd, lr: 0.01, momentum: 0.9}\n",
        "run.yaml", overrides);
    return ReadRunConfig(document);
  }
  nlohmann::json SummaryOf(const std::string& output) const {
    return nlohmann::json::parse(ReadFile(folder_ / output / "summary.json"));
  }
};

TEST_F(CompressRunTest, AtDensityOneTheWeightsAreThoseOfTheDenseRun) {
  const std::string dense = Run(Config("dense", {})).summary.weights_sha256;
  EXPECT_EQ(Run(Config("all", {"compress.name=topk", "compress.density=1"})).summary.weights_sha256,
            dense);
  EXPECT_NE(
      Run(Config("some", {"compress.name=topk", "compress.density=0.5"})).summary.weights_sha256,
      dense);
}

TEST_F(CompressRunTest, OneEntryInAHundredLearnsAllTheSame) {
  const TrainResult result =
      Run(Config("run", {"compress.name=topk", "compress.density=0.01", "epochs=12"}));
  EXPECT_GT(*result.summary.test->accuracy, 0.4);  // guessing: 0.1
  const nlohmann::json summary = SummaryOf("run");
  EXPECT_EQ(summary["compressor"], "topk");
  EXPECT_NEAR(summary["communication"]["density"], 0.01, 1e-4);
  EXPECT_GT(summary["communication"]["compress_seconds"], 0);
}

TEST_F(CompressRunTest, TwoWorkersAndTwoServersSendWhatTheDensitySays) {
  const std::vector<std::string> two = {"cluster.workers=2", "strategy.servers=2",
                                        "strategy.placement=dedicated"};
  std::vector<std::string> sparse = two;
  sparse.insert(sparse.end(), {"compress.name=topk", "compress.density=0.02"});
  Run(Config("dense", two));
  Run(Config("sparse", sparse));
  const nlohmann::json all = SummaryOf("dense"), some = SummaryOf("sparse");
  // Weights come back whole: two gradients and two weights become one and a little.
  const double bytes = some["communication"]["bytes_sent"],
               before = all["communication"]["bytes_sent"];
  EXPECT_NEAR(bytes / before, 0.52, 0.06);
  EXPECT_FALSE(all.contains("compressor"));
  EXPECT_FALSE(all["communication"].contains("density"));
  EXPECT_FALSE(all["communication"].contains("compress_seconds"));
}

TEST_F(CompressRunTest, AStrategyThatTakesNoneSaysWhichDo) {
  const auto error_of = [&](std::vector<std::string> more) {
    return MessageOf([&] { Config("run", std::move(more)); });
  };
  for (const char* name : {"ps_bsp", "allreduce"}) {
    EXPECT_THAT(error_of({std::string("strategy.name=") + name, "compress.name=topk"}),
                AllOf(HasSubstr(std::string("strategy '") + name + "' takes no compressor"),
                      HasSubstr("topk goes with ps_asp, ps_dssp, ps_ssp")));
  }
  EXPECT_THAT(error_of({"compress.name=gdtopk"}),
              AllOf(HasSubstr("strategy 'ps_asp' takes no compressor 'gdtopk'"),
                    HasSubstr("ps_asp takes topk")));
  EXPECT_THAT(error_of({"compress.name=topk", "compress.density=0"}),
              HasSubstr("compress.density must be > 0"));
  EXPECT_EQ(error_of({"compress.name=topk", "strategy.name=ps_ssp"}), "no error");
  EXPECT_EQ(error_of({"compress.name=none", "strategy.name=ps_bsp"}), "no error");
}

TEST_F(CompressRunTest, TheEffectiveConfigHasTheSection) {
  EXPECT_THAT(Config("run", {"compress.name=topk"}).effective_yaml,
              AllOf(HasSubstr("density: 0.01"), HasSubstr("scope: bucket")));
  EXPECT_THAT(Config("run", {}).effective_yaml,
              AllOf(HasSubstr("compress:"), Not(HasSubstr("scope"))));
}

}  // namespace
}  // namespace dtrain
