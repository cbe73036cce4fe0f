// Tests that a counter needs nothing but its declaration by a strategy: `dtrain list` shows it, and the summary has it,
// also after a resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/strategies/strategy.h"
#include "framework/strategies/sync/sync_worker.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHelp[] = "beads that workers moved, one a step";

class CountingWorker : public SyncWorker {
 public:
  explicit CountingWorker(const ActorSetup& setup) : SyncWorker("abacus", setup) {}
  void OnOutcome(const StepOutcome& outcome, Effects& effects) override {
    ++beads_;
    SyncWorker::OnOutcome(outcome, effects);
  }
  void Visit(StateVisitor& visitor) override {
    SyncWorker::Visit(visitor);
    visitor.Int("beads", beads_);
  }
  void Report(ProtocolReport& report) const override { report.Count("beads", beads_); }

 private:
  int64_t beads_ = 0;
};

class Abacus : public Strategy {
 public:
  void Configure(config::Reader&) override {}
  StrategyTraits traits() const override { return {.lockstep = true, .collectives = true}; }
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return {{0, layer_gradients.total()}};
  }
  std::unique_ptr<Actor> MakeActor(ActorId, const ActorSetup& setup) const override {
    return std::make_unique<CountingWorker>(setup);
  }
  std::vector<StrategyCounter> counters() const override {
    return {{"wires", "nothing"}, {"beads", kHelp}};
  }
};

DTRAIN_STRATEGY("abacus", Abacus, "all-reduce that counts its steps, for a test");

// Trains two epochs of five steps with three workers, in virtual time.
nlohmann::json SummaryIn(const fs::path& output, const std::string& resume) {
  const CommandOutcome outcome = RunCommand({"simulate",
                                             "--config",
                                             DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml",
                                             "--output",
                                             output.string(),
                                             "--resume",
                                             resume,
                                             "--set",
                                             "data.train_samples=320",
                                             "--set",
                                             "data.test_samples=40",
                                             "--set",
                                             "epochs=2",
                                             "--set",
                                             "strategy={name: abacus}",
                                             "--set",
                                             "cluster.workers=3",
                                             "--set",
                                             "cluster.step_seconds=0.1",
                                             "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(Counters, OfAnyStrategyAreInItsSummary) {
  const fs::path folder = FreshFolder();
  const nlohmann::json expected = {{"beads", 3 * 2 * 5}};
  EXPECT_EQ(SummaryIn(folder, "none")["protocol"], expected);
  const std::vector<fs::path> checkpoints = CheckpointFolder(folder / "checkpoints", 1).List();
  ASSERT_EQ(checkpoints.size(), 2u);
  fs::remove(checkpoints[0]);
  EXPECT_EQ(SummaryIn(folder, "auto")["protocol"], expected) << "after a resume";
}

TEST(Counters, AreListedWithTheirStrategy) {
  EXPECT_THAT(
      RunCommand({"list", "strategies", "abacus"}).out,
      HasSubstr("\n  protocol.beads         beads that workers moved, one a step (counted in "
                "summary.json)\n"));
  const auto listed = IndentedJson(RunCommand({"list", "strategies", "abacus", "--json"}).out)[0];
  EXPECT_EQ(listed["counters"][1], (nlohmann::json{{"name", "beads"}, {"help", kHelp}}));
  EXPECT_THAT(RunCommand({"list", "strategies", "wfbp"}).out, Not(HasSubstr("protocol.")));
}

}  // namespace
}  // namespace dtrain
