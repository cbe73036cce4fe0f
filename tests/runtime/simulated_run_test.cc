// Compares simulated runs of a config with real ones of the same config.
#include "framework/simulate/simulated_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/setup/run_setup.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SimulatedRunTest : public RunFixture {
 protected:
  RunConfig Config(const std::string& strategy, std::vector<std::string> more = {}) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / strategy).string(),
                                          "strategy.name=" + strategy, "cluster.workers=3"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " DTRAIN_SOURCE_DIR
        "/configs/models/lenet5.yaml}\n"
        "data: {name: digits, train_samples: 400, test_samples: 300}\n"
        "batch: 64\nepochs: 2\nthreads: 1\nsolver: {name: sgd, lr: 0.01, momentum: 0.9}\n"
        "cluster: {jitter: 0.3, step_seconds: 0.01}\n",
        "run.yaml", overrides);
    return ReadRunConfig(document);
  }

  static Summary Simulate(const RunConfig& config) {
    return SimulatedRun(config, std::nullopt, true).Run();
  }

  static Summary TrainForReal(const RunConfig& config) { return Run(config).summary; }
};

TEST_F(SimulatedRunTest, SynchronousStrategiesEndWithTheWeightsOfARealRun) {
  const Summary real =
      TrainForReal(Config("allreduce", {"cluster.jitter=0", "cluster.step_seconds=0"}));
  for (const char* strategy : {"allreduce", "ps_bsp"}) {
    const Summary simulated = Simulate(Config(strategy));
    EXPECT_EQ(simulated.weights_sha256, real.weights_sha256) << strategy;
    EXPECT_EQ(simulated.test->loss, real.test->loss) << strategy;
    EXPECT_EQ(simulated.compute, "numeric");
    EXPECT_DOUBLE_EQ(simulated.epochs, 2);
  }
  EXPECT_EQ(Simulate(Config("ps_bsp", {"strategy.servers=3"})).weights_sha256, real.weights_sha256);
}

TEST_F(SimulatedRunTest, WorkersWithWeightsOfTheirOwnEndWithTheMeanOfARealRun) {
  for (const char* period : {"strategy.period=1", "strategy.period=3", "strategy.period=100"}) {
    fs::remove_all(folder_ / "local_sgd");
    const Summary real =
        TrainForReal(Config("local_sgd", {period, "cluster.jitter=0", "cluster.step_seconds=0"}));
    const Summary simulated = Simulate(Config("local_sgd", {period}));
    EXPECT_EQ(simulated.weights_sha256, real.weights_sha256) << period;
    EXPECT_EQ(simulated.test->loss, real.test->loss) << period;
    // 14 steps: after the last one the replicas differ, unless it ended with a mean.
    EXPECT_EQ(real.protocol->replica_spread.value() > 0, std::string(period) != "strategy.period=1")
        << period;
  }
}

// Without momentum, a mean of the weights after each step is a step with the mean gradient.  The shares of 64 and of 16
// samples are uneven.  The model has no kinks, at which two runs that differ by rounding would part.
TEST_F(SimulatedRunTest, LocalSgdWithPeriodOneIsAllReduce) {
  std::ofstream(folder_ / "smooth.yaml")
      << "name: smooth\nlayers:\n"
         "  - {name: conv, type: convolution, outputs: 4, kernel: 5, stride: 3}\n"
         "  - {name: tanh, type: tanh}\n"
         "  - {name: flat, type: flatten}\n"
         "  - {name: fc, type: inner_product, outputs: 10}\n"
         "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
         "  - {name: accuracy, type: accuracy, input: [fc, label]}\n";
  const std::vector<std::string> keys = {"model.name=" + (folder_ / "smooth.yaml").string(),
                                         "epochs=15",
                                         "solver.momentum=0",
                                         "solver.lr=0.1",
                                         "max_steps=100",
                                         "cluster.step_seconds=0"};
  std::vector<std::string> local = keys;
  local.push_back("strategy.period=1");
  EXPECT_GT(TrainForReal(Config("allreduce", keys)).test->accuracy, 0.5);
  TrainForReal(Config("local_sgd", local));
  const auto weights = [&](const std::string& strategy) {
    const auto newest = CheckpointFolder(folder_ / strategy / "checkpoints", 1).List().front();
    EXPECT_EQ(newest.filename(), "step-00000100.h5");
    const RunConfig config = Config(strategy, keys);
    const Graph graph = ReadModel(config, LoadData(config)->fields());
    return ReadCheckpoint(newest, ModelLayoutOf(graph)).weights;
  };
  const std::vector<float> expected = weights("allreduce"), got = weights("local_sgd");
  ASSERT_EQ(got.size(), expected.size());
  double squares = 0, differences = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += double{expected[i]} * expected[i];
    differences += std::pow(double{got[i]} - expected[i], 2);
  }
  EXPECT_LT(std::sqrt(differences), 1e-5 * std::sqrt(squares));
  EXPECT_NE(got, expected) << "sums in another order";
}

// Words of a coder are summed or gathered in several rounds, which all ranks start in the same order.
TEST_F(SimulatedRunTest, CodedGradientsEndWithTheWeightsOfARealRun) {
  for (const std::string compress : {"ef_signsgd", "powersgd"}) {
    for (const char* strategy : {"wfbp", "allreduce"}) {
      const std::vector<std::string> keys = {"compress.name=" + compress, "solver.lr=0.005"};
      std::vector<std::string> free = keys;
      free.insert(free.end(), {"cluster.jitter=0", "cluster.step_seconds=0"});
      fs::remove_all(folder_ / strategy);
      const Summary real = TrainForReal(Config(strategy, free));
      const Summary simulated = Simulate(Config(strategy, keys));
      EXPECT_EQ(simulated.weights_sha256, real.weights_sha256) << strategy << ", " << compress;
      ASSERT_TRUE(simulated.communication && real.communication);
      EXPECT_EQ(simulated.communication->density, real.communication->density);
    }
  }
}

// A ghost run sends as many bytes as one with numbers.
TEST_F(SimulatedRunTest, GhostsOfCodersSendTheSameBytes) {
  for (const std::string compress : {"ef_signsgd", "powersgd"}) {
    const RunConfig config = Config("wfbp", {"compress.name=" + compress});
    const Summary numeric = Simulate(config);
    const Summary ghost = SimulatedRun(config, std::nullopt, false).Run();
    ASSERT_TRUE(numeric.communication && ghost.communication);
    EXPECT_EQ(ghost.communication->bytes_sent, numeric.communication->bytes_sent) << compress;
    EXPECT_EQ(ghost.communication->density, numeric.communication->density) << compress;
    EXPECT_EQ(ghost.seconds, numeric.seconds) << compress;
  }
}

// A checkpoint in the middle of a period keeps the weights of every worker.
TEST_F(SimulatedRunTest, AResumedLocalSgdRunEndsWithTheSameBits) {
  const std::vector<std::string> keys = {"cluster.step_seconds=0", "strategy.period=4",
                                         "checkpoint.every_steps=5", "checkpoint.keep=10"};
  const RunConfig config = Config("local_sgd", keys);
  const std::string whole = TrainForReal(config).weights_sha256;
  const fs::path folder = folder_ / "local_sgd/checkpoints";
  for (const char* step : {"14", "10", "07"}) {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().filename().string().starts_with(std::string("step-000000") + step)) {
        fs::remove(file.path());
      }
    }
    fs::remove(folder_ / "local_sgd/summary.json");
    fs::remove(folder / "latest");
    EXPECT_EQ(Run(config, {.resume = "auto"}).summary.weights_sha256, whole) << step;
  }
}

// The summaries of both also have the metrics after the first one.
TEST_F(SimulatedRunTest, ItsResultsAreThoseOfARealRun) {
  std::string model = ReadFile(DTRAIN_SOURCE_DIR "/configs/models/lenet5.yaml");
  model += "  - {name: top3, type: accuracy, top_k: 3, input: [fc3, label]}\n";
  std::ofstream(folder_ / "top3.yaml") << model;
  const std::vector<std::string> keys = {"model.name=" + (folder_ / "top3.yaml").string(),
                                         "cluster.jitter=0", "cluster.step_seconds=0",
                                         "max_steps=10"};  // in the middle of the second epoch
  const Summary real = TrainForReal(Config("allreduce", keys));
  const Summary simulated = Simulate(Config("allreduce", keys));
  ASSERT_EQ(real.test->others.size(), 1u);
  EXPECT_EQ(simulated.test->others, real.test->others);
  EXPECT_EQ(simulated.test->accuracy, real.test->accuracy);
  EXPECT_EQ(simulated.best->others, real.best->others);
  EXPECT_EQ(simulated.best->epoch, real.best->epoch);
  EXPECT_EQ(simulated.epochs, real.epochs);
  EXPECT_EQ(simulated.steps, real.steps);
  const double samples = simulated.steps * static_cast<double>(simulated.global_batch);
  EXPECT_GT(simulated.seconds, 0);
  EXPECT_DOUBLE_EQ(simulated.samples_per_second, samples / simulated.seconds);
}

TEST_F(SimulatedRunTest, ARunThatDivergesIsNotEvaluated) {
  const Summary simulated = Simulate(Config("allreduce", {"solver.lr=1e30"}));
  EXPECT_EQ(simulated.status, "failed");
  EXPECT_FALSE(simulated.test.has_value());
}

TEST_F(SimulatedRunTest, ARealParameterServerEndsWithTheWeightsOfAllReduce) {
  const std::vector<std::string> free = {"cluster.jitter=0", "cluster.step_seconds=0"};
  const std::string expected = TrainForReal(Config("allreduce", free)).weights_sha256;
  std::vector<std::string> shards = free;
  shards.push_back("strategy.servers=3");
  const Summary summary = TrainForReal(Config("ps_bsp", shards));
  EXPECT_EQ(summary.weights_sha256, expected);
  EXPECT_EQ(summary.servers, 3);
  ASSERT_TRUE(summary.staleness.has_value());
  EXPECT_EQ(summary.staleness->max, 0);
}

TEST_F(SimulatedRunTest, ARecordedRunReplaysToTheBit) {
  for (const char* strategy : {"ps_asp", "ps_ssp", "ps_dssp", "inhad", "gssp", "easgd"}) {
    const RunConfig config =
        Config(strategy, {"strategy.record=true", "cluster.step_seconds=0", "strategy.servers=2"});
    const Summary summary = TrainForReal(config);
    const RunRecord record = ReadRecord(folder_ / strategy / "record.bin");
    EXPECT_EQ(record.weights_sha256, summary.weights_sha256);
    EXPECT_EQ(ReplayRecord(config, record), summary.weights_sha256) << strategy;
    // Replicas that pass all-reduced gradients through momentum differ slightly; workers of similar speed may end in
    // one group, whose server alone counts then.
    ASSERT_TRUE(summary.protocol.has_value() || strategy[0] == 'p') << strategy;
    const double spread = summary.protocol ? summary.protocol->replica_spread.value_or(-1) : -1;
    EXPECT_EQ(spread >= 0 && spread < 0.5, config.strategy_name == "gssp") << spread;
  }
}

TEST_F(SimulatedRunTest, AResumedRunCannotBeReplayed) {
  RunRecord record;
  record.first_step = 7;
  EXPECT_THROW(ReplayRecord(Config("ps_asp"), record), UsageError);
}

// Two nodes have two workers each, and one dies.  With real gradients the run continues, learns and repeats, and its
// summary names the dead worker and what was lost with it.
TEST_F(SimulatedRunTest, ARunGoesOnWithoutItsDeadAndSaysWhatWasLost) {
  const RunConfig config =
      Config("inhad", {"cluster.workers=6", "cluster.per_node=2", "strategy.pull_timeout=0.05",
                       "cluster.deaths=[{node: 1, at_seconds: 0.031}, {worker: 5, at_step: 3}]"});
  const Summary summary = Simulate(config);
  EXPECT_EQ(summary.status, "completed");
  EXPECT_GE(summary.epochs, 2);
  ASSERT_EQ(summary.deaths.size(), 3u);
  int64_t steps = 0;
  for (const WorkerSummary& worker : summary.workers_detail) steps += worker.own_steps;
  for (const DeathSummary& death : summary.deaths) {
    EXPECT_EQ(death.node, death.worker / 2);
    EXPECT_EQ(death.own_steps, summary.workers_detail[static_cast<size_t>(death.worker)].own_steps);
    if (death.worker == 5) {
      EXPECT_EQ(death.own_steps, 3);
    } else {
      EXPECT_DOUBLE_EQ(death.seconds, 0.031);
    }
  }
  int64_t applied = 0;
  for (const int64_t count : summary.staleness->histogram) applied += count;
  ASSERT_TRUE(summary.protocol.has_value());
  EXPECT_EQ(applied + summary.protocol->Total("dropped") + summary.protocol->Total("lost"), steps);
  EXPECT_GT(*summary.test->accuracy, 0.15);
  EXPECT_EQ(Simulate(config).weights_sha256, summary.weights_sha256);
  EXPECT_THAT(DeathsText(summary), HasSubstr("worker 2 of node 1 died at 0.031 s, after "));
  EXPECT_THAT(ToJson(summary), HasSubstr("\"deaths\": ["));
}

TEST_F(SimulatedRunTest, WhereSomebodyDiesNothingIsSaved) {
  const RunConfig config =
      Config("ps_asp", {"cluster.deaths=[{worker: 1, at_step: 3}]", "max_steps=8"});
  EXPECT_EQ(Simulate(config).deaths.size(), 1u);
  SimulatedRun run(config, std::nullopt, true);
  EXPECT_THROW(run.KeepCheckpoints(folder_ / "kept", "none"), UsageError);
}

// The progress display reads the position from a thread of its own and has no other source.
TEST_F(SimulatedRunTest, ARunThatWasOverTakesNoMoreStepsThanItHad) {
  const RunConfig config = Config("allreduce", {"stop.target=0.01"});
  const fs::path output = folder_ / "kept";
  fs::create_directories(output);
  {
    SimulatedRun first(config, std::nullopt, true);
    EXPECT_EQ(first.steps(), 2 * 400 / 64.0);
    first.KeepCheckpoints(output, "none");
    first.Run();
  }
  SimulatedRun again(config, std::nullopt, true);
  ASSERT_EQ(again.KeepCheckpoints(output, "auto"), 7);
  again.Run();
  EXPECT_EQ(again.steps(), 400 / 64.0);
}

TEST_F(SimulatedRunTest, AnAsynchronousRunEndsAtItsSamples) {
  const Summary summary = Simulate(Config("ps_asp"));
  EXPECT_GE(summary.epochs, 2);
  EXPECT_LE(summary.epochs, 2 + 3 * 22 / 400.0);
  ASSERT_TRUE(summary.staleness.has_value());
  // Each gradient is overtaken by one of each other worker.
  EXPECT_NEAR(summary.staleness->mean, 2, 0.3);
}

// The centre goes on with the workers that are left.
TEST_F(SimulatedRunTest, AWorkerOfEasgdMayDie) {
  const Summary summary =
      Simulate(Config("easgd", {"strategy.period=2", "cluster.deaths=[{worker: 1, at_step: 3}]"}));
  EXPECT_EQ(summary.status, "completed");
  ASSERT_EQ(summary.deaths.size(), 1u);
  EXPECT_EQ(summary.workers_detail[1].own_steps, 3);
  EXPECT_GE(summary.epochs, 2);
}

TEST_F(SimulatedRunTest, AProfileHasNoShapesForACoder) {
  const RunConfig config = Config("wfbp", {"compress.name=powersgd"});
  RunConfig without = config;
  without.model = {};
  const ModelProfile profile{.model = "net", .batch = 8, .layers = {{"fc", 600, 2400, 0, 0, 600}}};
  EXPECT_THAT(MessageOf([&] { SimulatedRun(without, profile, false); }),
              HasSubstr("'powersgd' needs the shapes of the model's parameters"));
}

TEST_F(SimulatedRunTest, MoreServersThanParametersAreRefused) {
  const RunConfig config = Config("ps_bsp", {"strategy.servers=65000"});
  try {
    SimulatedRun(config, std::nullopt, false);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("strategy.servers is 65000, but the model has only 61706 parameters"));
  }
}

// The simulator has no cost for its all-reduces within a step; one worker has none.
TEST_F(SimulatedRunTest, BatchNormOverAllWorkersIsRefused) {
  const fs::path model = folder_ / "normed.yaml";
  std::ofstream(model) << "name: normed\nsample: [1, 28, 28]\nlayers:\n"
                          "  - {name: bn, type: batch_norm}\n"
                          "  - {name: fc, type: inner_product, outputs: 10}\n"
                          "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";
  const auto simulate = [&](int workers, const std::string& mode) {
    SimulatedRun(Config("allreduce", {"model.name=" + model.string(), "batch_norm=" + mode,
                                      fmt::format("cluster.workers={}", workers)}),
                 std::nullopt, false);
  };
  EXPECT_THAT(WhatOf<ConfigError>([&] { simulate(3, "sync"); }),
              HasSubstr("batch normalisation over all workers cannot be simulated"));
  EXPECT_NO_THROW(simulate(1, "sync"));
  EXPECT_NO_THROW(simulate(3, "local"));
}

TEST_F(SimulatedRunTest, AMeasuredPlanIsRefused) {
  EXPECT_THAT(WhatOf<ConfigError>(
                  [&] { SimulatedRun(Config("allreduce", {"plan=measure"}), std::nullopt, true); }),
              HasSubstr("a simulation does not measure its plan"));
  EXPECT_NO_THROW(SimulatedRun(Config("allreduce", {"plan=measure"}), std::nullopt, false));
}

TEST_F(SimulatedRunTest, AProfileOfAnotherModelIsRefused) {
  ModelProfile profile;
  profile.model = "other";
  profile.batch = 1;
  profile.layers = {{"fc", 10, 40, 0.1, 0.2, 100}};
  const RunConfig config = Config("allreduce");
  try {
    SimulatedRun(config, profile, false);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the profile of other has other layers"));
  }
}

}  // namespace
}  // namespace dtrain
