// Asynchronous strategies that are interrupted and resumed: at the end of an epoch, in the middle of
// one, and killed while a checkpoint is written.  Simulated, the run is the undisturbed one to the
// bit; for real, every account is exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/simulate/simulated_run.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/rank_checkpoint.h"
#include "framework/runtime/weights/weights_file.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Case {
  std::string name;
  std::vector<std::string> keys;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const Case kCases[] = {
    {"ps_asp", {"strategy={name: ps_asp, servers: 2}"}},
    {"ps_asp_topk",
     {"strategy={name: ps_asp, placement: colocated}", "compress={name: topk, density: 0.05}"}},
    {"ps_ssp", {"strategy={name: ps_ssp, servers: 2, staleness: 1}"}},
    {"gssp", {"strategy={name: gssp, servers: 2, exchange_every: 3}"}},
    {"gssp_gdtopk",
     {"strategy={name: gssp, servers: 2, exchange_every: 3}", "compress={name: gdtopk}"}},
    {"inhad", {"strategy={name: inhad, in_interval: 5}", "cluster.per_node=2"}},
    // Synchronous ones have files of their ranks in simulations only, for the time.
    {"allreduce", {"strategy={name: allreduce}"}},
    {"mgwfbp_oktopk",
     {"strategy={name: mgwfbp}", "compress={name: gaussiank, density: 0.05}",
      "compress.exchange=oktopk"}},
    {"ps_bsp", {"strategy={name: ps_bsp, servers: 2}"}}};

class ResumeMatrixTest : public RunFixture, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << R"(
name: small
layers:
  - {name: conv, type: convolution, outputs: 4, kernel: 5, stride: 3, bias: false}
  - {name: bn, type: batch_norm}
  - {name: relu, type: relu}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: accuracy, type: accuracy, input: [fc, label]}
)";
  }

  RunConfig Config(const std::string& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          "cluster.workers=4"};
    const std::vector<std::string>& keys = GetParam().keys;
    overrides.insert(overrides.end(), keys.begin(), keys.end());
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits, train_samples: 400, test_samples: 100}\n"
            "batch: 32\nepochs: 3\nthreads: 1\nsolver: {name: sgd, lr: 0.02, momentum: 0.9}\n"
            "cluster: {jitter: 0.3, slowdown: [1, 1.5, 2, 2.5], step_seconds: 0.01}\n"
            "checkpoint: {keep: 100}\n",
        "run.yaml", overrides);
    return ReadRunConfig(document);
  }

  static Summary Simulate(const RunConfig& config, const std::string& resume) {
    SimulatedRun run(config, std::nullopt, true);
    const std::optional<int64_t> step = run.KeepCheckpoints(config.output, resume);
    EXPECT_EQ(step.has_value(), resume == "auto");
    fs::create_directories(config.output);
    MetricsWriter metrics(RunFolder(config.output).metrics(), step);
    return run.Run([&](double, const MetricsPoint& at, Split split, const Evaluation& evaluation) {
      metrics.Write(run.results().MetricsOf(at, split, evaluation));
    });
  }

  std::vector<fs::path> Checkpoints(const std::string& output) const {
    return CheckpointFolder(folder_ / output / "checkpoints", 1).List();  // newest first
  }

  // A copy of a run's folder as it was when this checkpoint was the newest.
  void CopyUpTo(const std::string& from, const fs::path& newest, const std::string& to) const {
    fs::remove_all(folder_ / to);
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
    for (const auto& file : fs::directory_iterator(folder_ / to / "checkpoints")) {
      const std::string name = file.path().filename();
      if (name.substr(0, 13) > newest.filename().string().substr(0, 13)) fs::remove(file.path());
    }
    WriteFileDurably(folder_ / to / "checkpoints/latest", newest.filename().string() + "\n");
  }

  static void ExpectSame(const Summary& again, const Summary& whole) {
    EXPECT_EQ(again.weights_sha256, whole.weights_sha256);
    EXPECT_EQ(again.seconds, whole.seconds);
    EXPECT_EQ(again.steps, whole.steps);
    EXPECT_EQ(again.train_loss, whole.train_loss);
    EXPECT_EQ(again.test->loss, whole.test->loss);
    EXPECT_EQ(again.best->epoch, whole.best->epoch);
    EXPECT_EQ(again.communication->bytes_sent, whole.communication->bytes_sent);
    EXPECT_EQ(again.communication->messages, whole.communication->messages);
    EXPECT_EQ(again.communication->bytes_inside_nodes, whole.communication->bytes_inside_nodes);
    EXPECT_EQ(again.communication->bytes_per_gradient, whole.communication->bytes_per_gradient);
    EXPECT_EQ(again.communication->density, whole.communication->density);
    EXPECT_EQ(again.communication->compress_seconds, whole.communication->compress_seconds);
    ASSERT_EQ(again.workers_detail.size(), whole.workers_detail.size());
    for (size_t w = 0; w < whole.workers_detail.size(); ++w) {
      EXPECT_EQ(again.workers_detail[w].steps, whole.workers_detail[w].steps);
    }
  }

  // Goes on from every checkpoint of a simulated run, and, for one, from every place where a kill -9
  // may leave the folder while the checkpoint behind it is written.
  void CheckSimulated(const std::vector<std::string>& keys) const {
    const RunConfig whole_config = Config("whole", keys), again_config = Config("again", keys);
    const Summary whole = Simulate(whole_config, "none");
    const std::vector<fs::path> checkpoints = Checkpoints("whole");
    ASSERT_GE(checkpoints.size(), 3u);
    for (const fs::path& newest : checkpoints) {
      if (newest == checkpoints.front()) continue;  // the end
      SCOPED_TRACE(newest.filename().string());
      CopyUpTo("whole", newest, "again");
      ExpectSame(Simulate(again_config, "auto"), whole);
    }
    for (const std::string left :
         {"rank files", "half a rank file", "no main file", "half a main"}) {
      SCOPED_TRACE(left);
      const fs::path& newest = checkpoints[1];
      CopyUpTo("whole", newest, "again");
      Interrupt(folder_ / "again/checkpoints" / newest.filename(), left);
      ExpectSame(Simulate(again_config, "auto"), whole);
    }
  }

  // As a killed run leaves a step, of whose files each appears at once, the main file last.
  static void Interrupt(const fs::path& main, const std::string& left) {
    if (left == "half a main") return fs::resize_file(main, fs::file_size(main) / 2);
    fs::remove(main);
    if (left == "rank files") fs::remove(RankFileOf(main, 2));
    if (left != "half a rank file") return;
    fs::rename(RankFileOf(main, 1), RankFileOf(main, 1).string() + ".tmp");
    fs::remove(RankFileOf(main, 2));
  }
};

TEST_P(ResumeMatrixTest, SimulatedFromTheEndOfAnEpoch) { CheckSimulated({}); }

TEST_P(ResumeMatrixTest, SimulatedFromTheMiddleOfAnEpoch) {
  CheckSimulated({"checkpoint.every_epochs=0", "checkpoint.every_steps=5", "epochs=2"});
}

INSTANTIATE_TEST_SUITE_P(All, ResumeMatrixTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dtrain
