// Whole runs with frozen layers, with every strategy and compressor, real, simulated and resumed: frozen parameters end
// as they began, to the bit, and the others learn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "framework/checkpoint/weights_file.h"
#include "framework/compress/compressor.h"
#include "framework/results/run_record.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "framework/strategies/strategy.h"
#include "tests/runtime/resume_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// All layers below the first trained one are frozen, and a norm above a trained convolution.
constexpr char kFrozenModel[] = R"(
name: frozen
layers:
  - {name: conv1, type: convolution, outputs: 4, kernel: 5, stride: 3}
  - {name: bn1, type: batch_norm}
  - {name: relu1, type: relu}
  - {name: conv2, type: convolution, outputs: 6, kernel: 3, bias: false}
  - {name: bn2, type: batch_norm}
  - {name: relu2, type: relu}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: accuracy, type: accuracy, input: [fc, label]}
)";
constexpr char kWhatIsFrozen[] = "weights.freeze=[conv1, bn*]";

using Keys = std::vector<std::string>;

class FrozenRunTest : public ResumeFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << kFrozenModel;
  }

  // Three workers, so that their shares of a mean are not powers of two.
  RunConfig Of(const std::string& output, const Keys& more) const {
    Keys keys = {
        "cluster.workers=3", "cluster.slowdown=[1, 1.5, 2]", "data.train_samples=96",  "batch=24",
        "max_steps=8",       "solver.clip_norm=1000",        "solver.weight_decay=0.1"};
    keys.insert(keys.end(), more.begin(), more.end());
    return Config(output, keys);
  }
  Keys Tuned(const Keys& more) const {
    Keys keys = {"weights.from=" + (folder_ / "before").string(), kWhatIsFrozen};
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }
  // A run without frozen layers, so that its statistics are those of its images.
  void RunBefore() const { Run(Of("before", {"cluster={workers: 1}", "solver.weight_decay=0"})); }

  using Tensors = std::map<std::string, std::vector<float>>;
  static Tensors TensorsOf(const ModelLayout& layout, const float* weights, const float* state) {
    Tensors found;
    const auto add = [&](const ArenaLayout& of, const float* values) {
      for (const ArenaEntry& entry : of.entries) {
        found[entry.name].assign(values + entry.range.begin, values + entry.range.end);
      }
    };
    add(layout.parameters, weights);
    add(layout.state, state);
    return found;
  }
  // Returns the tensors of a run's newest checkpoint, or of a file.
  Tensors Stored(const std::string& run) const {
    const StoredWeights stored = ReadStoredWeights(FindCheckpoint((folder_ / run).string()));
    return TensorsOf(stored.layout, stored.weights.data(), stored.state.data());
  }
  // Returns the initial tensors of a run without given weights.
  static Tensors Drawn(const RunConfig& config) {
    const Graph graph = ReadModel(config);
    std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
    std::vector<float> state(static_cast<size_t>(graph.state().size()));
    graph.InitializeWeights(config.seed, weights.data());
    graph.InitializeState(state.data());
    return TensorsOf(ModelLayoutOf(graph), weights.data(), state.data());
  }

  static void ExpectFrozen(const Tensors& is, const Tensors& was) {
    ASSERT_EQ(is.size(), 13u);
    for (const auto& [name, values] : is) {
      const bool learns = name.starts_with("conv2.") || name.starts_with("fc.");
      const std::vector<float>& old = was.at(name);
      const bool same = std::memcmp(values.data(), old.data(), old.size() * sizeof(float)) == 0;
      EXPECT_EQ(same, !learns) << name;
    }
  }
  void ExpectFrozen(const std::string& run, const std::string& before = "before") const {
    SCOPED_TRACE(run);
    ExpectFrozen(Stored(run), Stored(before));
  }

  // Checks a real run that starts from weights, and a simulated one that draws its own.
  void ExpectFrozenIn(const Keys& keys) const {
    SCOPED_TRACE(testing::PrintToString(keys));
    EXPECT_EQ(Run(Of("real", Tuned(keys))).code, ExitCode::kDone);
    ExpectFrozen("real");
    ExpectFrozenInASimulation(keys);
    fs::remove_all(folder_ / "real");
  }
  void ExpectFrozenInASimulation(Keys keys) const {
    keys.push_back(kWhatIsFrozen);
    const RunConfig config = Of("simulated", keys);
    Simulate(config, "none");
    ExpectFrozen(Stored("simulated"), Drawn(config));
    fs::remove_all(folder_ / "simulated");
  }
};

class EveryStrategy : public FrozenRunTest, public testing::WithParamInterface<std::string> {
 protected:
  static std::unique_ptr<Strategy> Made() {
    return StrategyRegistry::Get("strategy", GetParam()).make();
  }
};

TEST_P(EveryStrategy, KeepsWhatIsFrozen) {
  RunBefore();
  const bool synchronous = Made()->traits().equal_weights();
  const std::string name = "strategy.name=" + GetParam();
  const bool has_servers = Made()->Place(1).servers > 0;
  Keys keys = {name};
  if (has_servers) keys.push_back("strategy.servers=2");
  for (const std::string mode : {"local", "sync"}) {
    if (mode == "sync" && !synchronous) continue;
    Keys of_mode = keys;
    of_mode.push_back("batch_norm=" + mode);
    ExpectFrozenIn(of_mode);
  }
  keys.insert(keys.end(), {"solver={name: adamw, lr: 0.01, weight_decay: 0.1}", "accumulate=2"});
  ExpectFrozenIn(keys);
}

TEST_P(EveryStrategy, KeepsWhatIsFrozenWithEveryCompressor) {
  const std::unique_ptr<Strategy> strategy = Made();
  if (strategy->PlansByTime()) return;  // its schedule is another strategy's
  RunBefore();
  for (const std::string& compressor : CompressorsOf(*strategy)) {
    Keys keys = {"strategy.name=" + GetParam(), "compress.name=" + compressor};
    if (!strategy->traits().lockstep) keys.push_back("strategy.servers=2");
    SCOPED_TRACE(compressor);
    Run(Of("run", Tuned(keys)));
    ExpectFrozen("run");
    fs::remove_all(folder_ / "run");
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryStrategy, testing::ValuesIn(StrategyRegistry::Names()));

// Groups that blend their models, and a node with several workers.
TEST_F(FrozenRunTest, MeansOfModelsKeepWhatIsFrozen) {
  RunBefore();
  const std::string averaging =
      "strategy={name: gssp, servers: 2, exchange: averaging, exchange_every: 2";
  for (const std::string inside : {"ssp", "bsp"}) {
    ExpectFrozenIn({averaging + ", inside: " + inside + "}"});
  }
  ExpectFrozenInASimulation({"strategy={name: inhad}", "cluster.per_node=3"});
}

TEST_F(FrozenRunTest, TheBestWeightsHaveWhatIsFrozen) {
  RunBefore();
  Run(Of("run", Tuned({"checkpoint.keep_best=true", "data.validation=0.2"})));
  ExpectFrozen("run/checkpoints/best.h5");
}

// Only the head is trained, from a model with another head.
TEST_F(FrozenRunTest, AnExceptedHeadLearnsOnFrozenLayers) {
  RunBefore();
  Run(Of("run", {"weights.from=" + (folder_ / "before").string(), "weights.except=[fc]",
                 "weights.freeze=[conv*, bn*]", "strategy={name: ps_ssp, servers: 2}"}));
  const auto was = Stored("before"), is = Stored("run");
  for (const auto& [name, values] : is) {
    EXPECT_EQ(values == was.at(name), !name.starts_with("fc.")) << name;
  }
}

// No worker needs the statistics of the others, so that workers need not step together.
TEST_F(FrozenRunTest, FrozenSyncNormsTrainAsynchronously) {
  std::string text = kFrozenModel;
  for (const std::string norm : {"bn1", "bn2"}) {
    text.insert(text.find(", type: batch_norm", text.find(norm)), ", sync: true");
  }
  std::ofstream(folder_ / "model.yaml") << text;
  RunBefore();
  const std::string asp = "strategy={name: ps_asp, servers: 2}";
  Run(Of("run", Tuned({asp})));
  ExpectFrozen("run");
  EXPECT_THAT(MessageOf([&] { Run(Of("other", {asp})); }), HasSubstr("'sync: true'"));
}

// A rate of 0 is not freezing: only the parameters stay.
TEST_F(FrozenRunTest, ARateOfZeroIsReportedWithoutTheStatistics) {
  const auto frozen_text = [&](const Keys& keys) { return FrozenText(ReadModel(Of("run", keys))); };
  EXPECT_EQ(frozen_text({}), "");
  EXPECT_EQ(frozen_text({kWhatIsFrozen}),
            "conv1, bn1, bn2 (3 of 5 layers with parameters, 124 of 2510 parameters)");
  std::string text = kFrozenModel;
  text.insert(text.find(", type: batch_norm"), ", lr_factor: 0");
  std::ofstream(folder_ / "model.yaml") << text;
  EXPECT_EQ(frozen_text({}),
            "bn1 without its statistics (1 of 5 layers with parameters, 8 of 2510 parameters)");
  RunBefore();
  Run(Of("run", {"weights.from=" + (folder_ / "before").string()}));
  const auto was = Stored("before"), is = Stored("run");
  for (const auto& [name, values] : is) {
    EXPECT_EQ(values == was.at(name), name == "bn1.weight" || name == "bn1.bias") << name;
  }
}

// --- resumed

TEST_F(FrozenRunTest, AFrozenRunResumesToTheSameBits) {
  RunBefore();
  for (const std::string strategy :
       {"{name: allreduce}", "{name: ps_bsp, servers: 2}", "{name: ps_asp, servers: 2}",
        "{name: gssp, servers: 2, exchange: averaging, exchange_every: 2}", "{name: inhad}"}) {
    SCOPED_TRACE(strategy);
    const Keys keys = {"strategy=" + strategy, "checkpoint.every_epochs=0",
                       "checkpoint.every_steps=3", "max_steps=9", kWhatIsFrozen};
    const RunConfig again = Of("again", keys);
    const Summary whole = Simulate(Of("whole", keys), "none");
    const std::vector<fs::path> checkpoints = Checkpoints("whole");
    ASSERT_EQ(checkpoints.size(), 3u);
    CopyUpTo("whole", checkpoints[2], "again");
    ExpectSame(Simulate(again, "auto"), whole);
    ExpectFrozen(Stored("again"), Drawn(again));
    fs::remove_all(folder_ / "whole");

    Keys part = Tuned(keys);
    part.push_back("max_steps=4");
    Run(Of("real", part));
    EXPECT_EQ(Run(Of("real", Tuned(keys)), {.resume = "auto", .weights = ""}).code,
              ExitCode::kDone);
    ExpectFrozen("real");
    fs::remove_all(folder_ / "real");
  }
}

TEST_F(FrozenRunTest, AReplayKeepsWhatIsFrozen) {
  const RunConfig config =
      Of("run", {"strategy={name: gssp, servers: 2, record: true}", kWhatIsFrozen});
  const Summary summary = Run(config).summary;
  ExpectFrozen(Stored("run"), Drawn(config));
  EXPECT_EQ(ReplayRecord(config, ReadRecord(folder_ / "run/record.bin")), summary.weights_sha256);
}

// Layers are frozen at a resume, when each worker has its own statistics and each replica its own model: all take those
// of the checkpoint, and neither momentum nor a residual changes them.
TEST_F(FrozenRunTest, AResumeThatFreezesKeepsWhatTheCheckpointHas) {
  for (const Keys& keys :
       {Keys{"strategy={name: allreduce}"}, Keys{"strategy={name: allreduce}", "compress=dgc"},
        Keys{"strategy={name: ps_asp, servers: 2}", "compress={name: topk, density: 0.1}"},
        Keys{"strategy={name: gssp, servers: 2, exchange: averaging, exchange_every: 2}"},
        Keys{"strategy={name: gssp, servers: 2}", "compress=gdtopk"},
        Keys{"strategy={name: inhad}"}}) {
    SCOPED_TRACE(testing::PrintToString(keys));
    for (const bool simulated : {false, true}) {
      const auto run = [&](const Keys& more, const std::string& resume) {
        Keys all = keys;
        all.insert(all.end(), more.begin(), more.end());
        const RunConfig config = Of("run", all);
        if (simulated) {
          Simulate(config, resume);
        } else {
          Run(config, {.resume = resume, .weights = ""});
        }
      };
      run({"max_steps=4"}, "none");
      fs::copy_file(FindCheckpoint((folder_ / "run").string()), folder_ / "then.h5");
      run({kWhatIsFrozen}, "auto");
      ExpectFrozen("run", "then.h5");
      fs::remove_all(folder_ / "run");
      fs::remove(folder_ / "then.h5");
    }
  }
}

}  // namespace
}  // namespace dtrain
