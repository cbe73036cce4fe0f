// What becomes of rank files in a run that is not the one that wrote them: with other workers, with
// another strategy, and where one is damaged.
#include "framework/runtime/run/rank_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/runtime/setup/run_setup.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/weights_file.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RankStateTest : public RunFixture {
 protected:
  RunConfig Config(int workers, const std::vector<std::string>& more) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / "run").string(),
                                          fmt::format("cluster.workers={}", workers)};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " DTRAIN_SOURCE_DIR
        "/configs/models/lenet5.yaml}\n"
        "data: {name: digits, train_samples: 200, test_samples: 20}\n"
        "batch: 32\nepochs: 9\nthreads: 1\nsolver: {name: sgd, lr: 0.01, momentum: 0.9}\n"
        "checkpoint: {every_steps: 3, every_epochs: 0, keep: 9}\nevaluate: {every_epochs: 0}\n",
        "run.yaml", overrides);
    return ReadRunConfig(document);
  }

  // The newest checkpoint, in a run of this config.
  RankStart StartIn(const RunConfig& config) const {
    const std::unique_ptr<Dataset> data = LoadData(config);
    const Graph graph = ReadModel(config, data->fields());
    const std::optional<Checkpoint> checkpoint =
        ResumeFrom(folder_ / "run/checkpoints", "auto", ModelLayoutOf(graph));
    return StartOfRanks(*checkpoint, WorldOf(config, graph, *data, RunTime::kReal), true);
  }

  fs::path Latest() const { return FindCheckpoint(folder_ / "run"); }
  RankCheckpoint FileOf(int rank) const {
    return ReadRankCheckpoint(Latest(), rank, ReadStoredInfo(Latest()).rank_files.at(rank));
  }

  template <class Body>
  static std::string Said(const Body& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }
};

const std::vector<std::string> kTopk = {"strategy={name: ps_asp, placement: colocated}",
                                        "compress={name: topk, density: 0.02}"};

std::vector<std::string> With(std::vector<std::string> keys, const std::string& more) {
  keys.push_back(more);
  return keys;
}

TEST_F(RankStateTest, OtherWorkersGoOnWithTheSumOfAllResiduals) {
  Run(Config(3, With(kTopk, "max_steps=7")));
  std::vector<float> sum(61706);
  for (int rank = 0; rank < 3; ++rank) {
    const RankCheckpoint file = FileOf(rank);
    const StateField* residual = file.exchange.Find(fmt::format("worker {}", rank), "residual");
    ASSERT_NE(residual, nullptr);
    ASSERT_EQ(residual->floats.size(), sum.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += residual->floats[i];
  }
  RankStart start;
  const std::string said = Said([&] { start = StartIn(Config(2, kTopk)); });
  EXPECT_THAT(said, AllOf(HasSubstr("- workers: 3"), HasSubstr("+ workers: 2"),
                          HasSubstr("worker 0 goes on with the sum of all residuals")));
  EXPECT_FALSE(start.exact());
  EXPECT_EQ(start.residual, sum);
  // And it is what a run does.
  EXPECT_EQ(Run(Config(2, With(kTopk, "max_steps=14")), {.resume = "auto"}).code, ExitCode::kDone);
  EXPECT_EQ(ReadStoredInfo(Latest()).rank_files.size(), 2u);
}

TEST_F(RankStateTest, TheSameRunGoesOnWithItsOwn) {
  Run(Config(2, With(kTopk, "max_steps=7")));
  RankStart start;
  EXPECT_EQ(Said([&] { start = StartIn(Config(2, kTopk)); }), "");
  EXPECT_TRUE(start.exact());
  EXPECT_TRUE(start.residual.empty());
  EXPECT_EQ(start.hashes.size(), 2u);
}

// Four workers on two nodes, whose sums are rarely whole when a rest comes.
TEST_F(RankStateTest, PartialSumsAreNotLeftToNobody) {
  const std::vector<std::string> inhad = {"strategy={name: inhad}", "cluster.per_node=2"};
  std::string holds;
  for (int steps = 3; holds.empty() && steps < 60; ++steps) {
    fs::remove_all(folder_ / "run");
    Run(Config(4, With(inhad, fmt::format("max_steps={}", steps))));
    for (const fs::path& path : CheckpointFolder(folder_ / "run/checkpoints", 1).List()) {
      holds.clear();
      const std::vector<std::string> hashes = ReadStoredInfo(path).rank_files;
      for (size_t rank = 0; rank < hashes.size(); ++rank) {
        holds += ReadRankCheckpoint(path, static_cast<int64_t>(rank), hashes[rank]).holds;
      }
      if (!holds.empty()) break;
      fs::remove(path);  // the next one is the newest
    }
  }
  ASSERT_THAT(holds, HasSubstr("not pulled yet"));
  EXPECT_THAT(MessageOf([&] { StartIn(Config(2, inhad)); }),
              AllOf(HasSubstr("6: "), HasSubstr("cannot be resumed with other workers or servers"),
                    HasSubstr("- workers: 4"), HasSubstr("gradients would be lost: node "),
                    HasSubstr("not pulled yet"), HasSubstr("--weights")));
  EXPECT_EQ(Said([&] { StartIn(Config(4, inhad)); }), "");
}

TEST_F(RankStateTest, AnotherStrategyBeginsWithTheModelAndSaysWhatIsLost) {
  Run(Config(2, With(kTopk, "max_steps=7")));
  RankStart start;
  const std::string said = Said([&] {
    start = StartIn(Config(2, {"strategy={name: ps_ssp, placement: colocated}",
                               "compress={name: topk, density: 0.02}"}));
  });
  EXPECT_THAT(said, AllOf(HasSubstr("-   name: ps_asp"), HasSubstr("+   name: ps_ssp"),
                          HasSubstr("residuals and accumulators begin empty")));
  EXPECT_FALSE(start.exact());
  EXPECT_TRUE(start.residual.empty());
}

TEST_F(RankStateTest, ASynchronousRunHasNoRankFiles) {
  Run(Config(2, {"strategy={name: allreduce}", "max_steps=4"}));
  EXPECT_TRUE(ReadStoredInfo(Latest()).rank_files.empty());
  for (const auto& file : fs::directory_iterator(folder_ / "run/checkpoints")) {
    EXPECT_THAT(file.path().filename().string(), Not(HasSubstr("rank")));
  }
  EXPECT_THAT(Said([&] { StartIn(Config(2, kTopk)); }),
              HasSubstr("has no rank files: residuals and accumulators begin empty"));
}

TEST_F(RankStateTest, WithADamagedRankFileAllRanksTakeTheStepBefore) {
  Run(Config(3, With(kTopk, "max_steps=7")));
  const std::vector<fs::path> steps = CheckpointFolder(folder_ / "run/checkpoints", 1).List();
  ASSERT_GE(steps.size(), 2u);
  fs::resize_file(RankFileOf(steps[0], 2), 700);
  const std::string said = Said([&] {
    EXPECT_EQ(Run(Config(3, With(kTopk, "max_steps=9")), {.resume = "auto"}).code, ExitCode::kDone);
  });
  EXPECT_THAT(said, AllOf(HasSubstr(RankFileOf(steps[0], 2).string() + " is damaged"),
                          HasSubstr("going on from " + steps[1].filename().string())));
}

}  // namespace
}  // namespace dtrain
