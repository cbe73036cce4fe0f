// Tests what a run makes of rank files that another run wrote: with other workers, keys or another strategy, and with a
// damaged file.
#include "framework/train/rank_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/setup/run_setup.h"
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

  // Returns the start of a run of this config from the newest checkpoint.
  RankStart StartIn(const RunConfig& config, const std::string& more_info = "") const {
    const std::unique_ptr<Dataset> data = LoadData(config);
    const Graph graph = ReadModel(config, data->fields());
    const std::optional<Checkpoint> checkpoint =
        ResumeFrom(folder_ / "run/checkpoints", "auto", ModelLayoutOf(graph));
    RankCheckpoint here = WorldOf(config, graph, *data, RunTime::kReal);
    here.actors += more_info;
    return StartOfRanks(*checkpoint, config, here, true);
  }

  // Resumes the run repeatedly, one more step each time, until the newest checkpoint holds gradients.
  void RunUntilItHolds(int workers, const std::vector<std::string>& keys) const {
    for (int steps = 3; steps < 60; ++steps) {
      fs::remove_all(folder_ / "run");
      std::vector<std::string> more = keys;
      more.push_back(fmt::format("max_steps={}", steps));
      Run(Config(workers, more));
      for (const fs::path& path : CheckpointFolder(folder_ / "run/checkpoints", 1).List()) {
        const std::vector<std::string> hashes = ReadStoredInfo(path).rank_files;
        for (size_t rank = 0; rank < hashes.size(); ++rank) {
          const auto file = ReadRankCheckpoint(path, static_cast<int64_t>(rank), hashes[rank]);
          if (!file.holds.empty()) return;
        }
        fs::remove(path);  // the previous one is now the newest
      }
    }
    FAIL() << "every boundary came when all was exchanged";
  }

  // Returns the sum over all workers, in worker order, of a vector in the newest checkpoint.
  std::vector<float> SumOf(const std::string& vector, int workers) const {
    std::vector<float> sum(61706);
    for (int rank = 0; rank < workers; ++rank) {
      const RankCheckpoint file = FileOf(rank);
      const StateField* kept = file.exchange.Find(fmt::format("worker {}", rank), vector);
      if (kept == nullptr || kept->floats.size() != sum.size()) return {};
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += kept->floats[i];
    }
    return sum;
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

// Each worker's residual was to be applied at lr / 3, and worker 0 now sends their sum at lr / 2.
TEST_F(RankStateTest, OtherWorkersGoOnWithTheSumOfAllResidualsAtTheRateThatItIsDueAt) {
  Run(Config(3, With(kTopk, "max_steps=7")));
  std::vector<float> due = SumOf("residual", 3);
  ASSERT_FALSE(due.empty());
  for (float& value : due) value *= static_cast<float>((1.0 / 3) / (1.0 / 2));
  RankStart start;
  const std::string said = Said([&] { start = StartIn(Config(2, kTopk)); });
  EXPECT_THAT(said, AllOf(HasSubstr("- workers: 3"), HasSubstr("+ workers: 2"),
                          HasSubstr("worker 0 takes over the sum of all residuals"),
                          HasSubstr("each worker's position in its data becomes the average")));
  EXPECT_FALSE(start.exact());
  EXPECT_EQ(start.kept.residual, due);
  // A run does the same.
  EXPECT_EQ(Run(Config(2, With(kTopk, "max_steps=14")), {.resume = "auto"}).code, ExitCode::kDone);
  EXPECT_EQ(ReadStoredInfo(Latest()).rank_files.size(), 2u);
}

// dgc's workers have the momentum, which is a sum over them.
TEST_F(RankStateTest, OtherWorkersGoOnWithTheSumOfAllMomentum) {
  const std::vector<std::string> dgc = {"strategy={name: allreduce}",
                                        "compress={name: dgc, density: 0.02}"};
  Run(Config(3, With(dgc, "max_steps=7")));
  RankStart start;
  EXPECT_THAT(Said([&] { start = StartIn(Config(2, dgc)); }),
              HasSubstr("worker 0 takes over the sum of all workers' momentum"));
  EXPECT_EQ(start.kept.velocity, SumOf("velocity", 3));
  EXPECT_EQ(start.kept.residual, SumOf("residual", 3));
  EXPECT_EQ(Run(Config(2, With(dgc, "max_steps=9")), {.resume = "auto"}).code, ExitCode::kDone);
}

TEST_F(RankStateTest, MomentumThatHasNoPlaceIsMissed) {
  Run(Config(2,
             {"strategy={name: allreduce}", "compress={name: dgc, density: 0.02}", "max_steps=7"}));
  const std::string topk = "compress={name: topk, density: 0.02}";
  EXPECT_THAT(Said([&] {
                StartIn(Config(2, {"strategy={name: allreduce}", topk}));
              }),
              HasSubstr("the momentum that workers kept is lost"));
}

TEST_F(RankStateTest, WhereEveryGradientTakesTheWholeRateTheSumIsAsItIs) {
  const std::vector<std::string> one = With(kTopk, "strategy.scale=one");
  Run(Config(3, With(one, "max_steps=7")));
  Said([&] { EXPECT_EQ(StartIn(Config(2, one)).kept.residual, SumOf("residual", 3)); });
  // The workers are the same, but each gradient is applied with half the rate from now on.
  Said([&] {
    std::vector<float> due = SumOf("residual", 3);
    for (float& value : due) value *= static_cast<float>(1 / (1.0 / 3));
    EXPECT_EQ(StartIn(Config(3, With(kTopk, "strategy.scale=share"))).kept.residual, due);
  });
}

TEST_F(RankStateTest, ResidualsThatHaveNoPlaceAreNotLeftToNobody) {
  Run(Config(2, With(kTopk, "max_steps=7")));
  EXPECT_THAT(
      MessageOf([&] { StartIn(Config(2, {"strategy={name: ps_asp, placement: colocated}"})); }),
      AllOf(HasSubstr("6: "), HasSubstr("-   name: topk"), HasSubstr("+   name: none"),
            HasSubstr("gradients would be lost: residuals"), HasSubstr("--weights")));
}

TEST_F(RankStateTest, TheSameRunGoesOnWithItsOwn) {
  Run(Config(2, With(kTopk, "max_steps=7")));
  RankStart start;
  EXPECT_EQ(Said([&] { start = StartIn(Config(2, kTopk)); }), "");
  EXPECT_TRUE(start.exact());
  EXPECT_TRUE(start.kept.residual.empty());
  EXPECT_EQ(start.hashes.size(), 2u);
}

// Four workers are on two nodes, whose sums are rarely complete at a boundary.
TEST_F(RankStateTest, PartialSumsAreNotLeftToNobody) {
  const std::vector<std::string> inhad = {"strategy={name: inhad}", "cluster.per_node=2"};
  RunUntilItHolds(4, inhad);
  EXPECT_THAT(MessageOf([&] { StartIn(Config(2, inhad)); }),
              AllOf(HasSubstr("6: "), HasSubstr("cannot be resumed"), HasSubstr("- workers: 4"),
                    HasSubstr("gradients would be lost: node "), HasSubstr("not pulled yet"),
                    HasSubstr("--weights")));
  EXPECT_EQ(Said([&] { StartIn(Config(4, inhad)); }), "");
}

// Only the groups' servers know what the held gradients are for.
TEST_F(RankStateTest, AChangedKeyIsRefusedWhileGradientsAreHeld) {
  const std::vector<std::string> gssp = {
      "strategy={name: gssp, servers: 2, exchange_every: 5, placement: colocated}"};
  RunUntilItHolds(4, gssp);
  EXPECT_THAT(
      MessageOf([&] { StartIn(Config(4, With(gssp, "strategy.exchange=averaging"))); }),
      AllOf(HasSubstr("6: "), HasSubstr("-   exchange: gradients"),
            HasSubstr("+   exchange: averaging"), HasSubstr("that the other groups have not had"),
            HasSubstr("resume with the values of the run that wrote it")));
  // One key changes no state, and one is unknown to another version.
  for (const char* key : {"strategy.staleness=4", "strategy.exchange_every=9"}) {
    EXPECT_EQ(Said([&] { EXPECT_TRUE(StartIn(Config(4, With(gssp, key))).exact()) << key; }), "");
  }
  EXPECT_TRUE(StartIn(Config(4, gssp), "later: 1\n").exact());
  EXPECT_EQ(Run(Config(4, With(gssp, "strategy.staleness=4")), {.resume = "auto"}).code,
            ExitCode::kDone);
}

TEST_F(RankStateTest, AChangedKeyIsAWarningWhereNothingIsHeld) {
  Run(Config(2, {"strategy={name: ps_ssp, placement: colocated}", "max_steps=7"}));
  RankStart start;
  const std::string said = Said([&] {
    start = StartIn(Config(2, {"strategy={name: ps_ssp, placement: colocated, scale: one}"}));
  });
  EXPECT_THAT(said, AllOf(HasSubstr("-   scale: share"), HasSubstr("+   scale: one"),
                          HasSubstr("each worker's position in its data becomes the average")));
  EXPECT_FALSE(start.exact());
}

TEST_F(RankStateTest, AnotherStrategyTakesTheResiduals) {
  Run(Config(2, With(kTopk, "max_steps=7")));
  RankStart start;
  const std::string said = Said([&] {
    start = StartIn(Config(2, {"strategy={name: ps_ssp, placement: colocated}",
                               "compress={name: topk, density: 0.02}"}));
  });
  EXPECT_THAT(said, AllOf(HasSubstr("-   name: ps_asp"), HasSubstr("+   name: ps_ssp"),
                          HasSubstr("worker 0 takes over the sum of all residuals")));
  EXPECT_FALSE(start.exact());
  EXPECT_EQ(start.kept.residual, SumOf("residual", 2));
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
