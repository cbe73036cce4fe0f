// Simulated runs that are resumed: a small model on a cluster of uneven workers, its checkpoints, and the values that
// must be equal in the end.
#pragma once

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "framework/results/run_folder.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/normed_model.h"

namespace dtrain {

class ResumeFixture : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << kNormedModel;
  }

  // Returns the key for a model without batch norm.  A resumed real run continues batch statistics from the workers'
  // mean.
  std::string PlainModel() const {
    std::ofstream(folder_ / "plain.yaml") << R"(
name: plain
layers:
  - {name: conv, type: convolution, outputs: 4, kernel: 5, stride: 3}
  - {name: relu, type: relu}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: accuracy, type: accuracy, input: [fc, label]}
)";
    return "model.name=" + (folder_ / "plain.yaml").string();
  }

  // `keys` are --set overrides.
  RunConfig Config(const std::string& output, const std::vector<std::string>& keys) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          "cluster.workers=4"};
    overrides.insert(overrides.end(), keys.begin(), keys.end());
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
    EXPECT_EQ(step.has_value(), resume != "none");
    std::filesystem::create_directories(config.output);
    return run.Run();
  }

  std::vector<std::filesystem::path> Checkpoints(const std::string& output) const {
    return CheckpointFolder(folder_ / output / "checkpoints", 1).List();  // newest first
  }

  // Copies a run's folder as it was when this checkpoint was the newest.
  void CopyUpTo(const std::string& from, const std::filesystem::path& newest,
                const std::string& to) const {
    std::filesystem::remove_all(folder_ / to);
    std::filesystem::copy(folder_ / from, folder_ / to, std::filesystem::copy_options::recursive);
    for (const auto& file : std::filesystem::directory_iterator(folder_ / to / "checkpoints")) {
      const std::string name = file.path().filename();
      if (name.substr(0, 13) > newest.filename().string().substr(0, 13)) {
        std::filesystem::remove(file.path());
      }
    }
    WriteFileDurably(folder_ / to / "checkpoints/latest", newest.filename().string() + "\n");
  }

  // Compares virtual times, bytes, losses and all else: nothing depends on the clock.
  static void ExpectSame(const Summary& again, const Summary& whole) {
    EXPECT_EQ(nlohmann::json::parse(ToJson(again)).dump(1),
              nlohmann::json::parse(ToJson(whole)).dump(1));
  }
  void ExpectSameMetrics(const std::string& again, const std::string& whole) const {
    EXPECT_EQ(ReadFile(folder_ / again / "metrics.jsonl"),
              ReadFile(folder_ / whole / "metrics.jsonl"));
  }
};

}  // namespace dtrain
