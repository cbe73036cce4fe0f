// Compares the statistics that a run estimates for a mean of replicas with plain loops in double, and those of real,
// simulated, resumed and replayed runs with each other.  The order of an epoch's samples (Sampler::Shuffle) is taken as
// given.
#include "framework/train/estimated_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/evaluate/evaluator.h"
#include "framework/results/run_record.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using Keys = std::vector<std::string>;

constexpr int64_t kTrainedOn = 720, kTestedOn = 300, kNumbers = 3, kUnits = 4, kTwoClasses = 2;
// Of at most 256 samples each.
constexpr int64_t kEstimated = 600, kEstimateBatches = 3;
constexpr double kAdded = 1e-5;

constexpr char kTwoNorms[] = R"(
name: normed
layers:
  - {name: norm1, type: batch_norm}
  - {name: fc1, type: inner_product, outputs: 4}
  - {name: norm2, type: batch_norm, momentum: 0.3}
  - {name: relu, type: relu}
  - {name: drop, type: dropout}
  - {name: fc2, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
  - {name: accuracy, type: accuracy, input: [fc2, label]}
)";

// The test samples are the first ones of the training samples.
double Wave(Split, int64_t sample, int64_t i) {
  const auto at = static_cast<double>(sample);
  return static_cast<double>(i + 1) * std::sin(7 * at + 3 * static_cast<double>(i)) + std::cos(at) +
         2;
}
int64_t ClassOfWave(int64_t sample) {
  return std::sin(7 * static_cast<double>(sample)) > 0.3 ? 1 : 0;
}

const OwnData kTwoWaves = {.train_samples = kTrainedOn,
                           .test_samples = kTestedOn,
                           .numbers = kNumbers,
                           .classes = kTwoClasses,
                           .number = Wave,
                           .label = ClassOfWave};

using ValueRow = std::vector<double>;
using NamedTensors = std::map<std::string, std::vector<float>>;

// Mean and unbiased variance of each column.
struct ColumnMoments {
  ValueRow mean, variance;
  explicit ColumnMoments(const std::vector<ValueRow>& rows)
      : mean(rows[0].size()), variance(rows[0].size()) {
    const auto count = static_cast<double>(rows.size());
    for (size_t c = 0; c < mean.size(); ++c) {
      for (const ValueRow& row : rows) mean[c] += row[c] / count;
      for (const ValueRow& row : rows) variance[c] += std::pow(row[c] - mean[c], 2) / (count - 1);
    }
  }
};

// The model in plain loops.
class TwoNormsInDouble {
 public:
  explicit TwoNormsInDouble(NamedTensors tensors) : t_(std::move(tensors)) {}

  static std::vector<ValueRow> Read(Split split, std::span<const int64_t> samples) {
    std::vector<ValueRow> rows;
    for (const int64_t s : samples) {
      ValueRow& row = rows.emplace_back();
      for (int64_t i = 0; i < kNumbers; ++i) row.push_back(Wave(split, s, i));
    }
    return rows;
  }

  std::vector<ValueRow> Norm(const std::string& name, std::vector<ValueRow> rows,
                             const ValueRow& mean, const ValueRow& variance) const {
    for (ValueRow& row : rows) {
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = At(name + ".weight", c) * (row[c] - mean[c]) / std::sqrt(variance[c] + kAdded) +
                 At(name + ".bias", c);
      }
    }
    return rows;
  }

  std::vector<ValueRow> Multiply(const std::string& name, const std::vector<ValueRow>& rows,
                                 size_t outputs) const {
    std::vector<ValueRow> products;
    for (const ValueRow& row : rows) {
      ValueRow& product = products.emplace_back();
      for (size_t o = 0; o < outputs; ++o) {
        product.push_back(At(name + ".bias", o));
        for (size_t i = 0; i < row.size(); ++i) {
          product[o] += At(name + ".weight", o * row.size() + i) * row[i];
        }
      }
    }
    return products;
  }

  // Returns the means over the batches of running_mean and running_var of both norms.
  std::map<std::string, ValueRow> Estimate() const {
    const Sampler sampler(1, kTrainedOn, 8);
    std::vector<int64_t> order;
    sampler.Shuffle(0, order);
    std::map<std::string, ValueRow> sums;
    for (int64_t b = 0; b < kEstimateBatches; ++b) {
      const int64_t size = kEstimated / kEstimateBatches;
      const auto first = order.begin() + b * size;
      const std::vector<ValueRow> x = Read(Split::kTrain, {first, first + size});
      const ColumnMoments of_x(x);
      const double biased = static_cast<double>(size - 1) / static_cast<double>(size);
      ValueRow variance = of_x.variance;
      for (double& v : variance) v *= biased;
      const ColumnMoments of_y(Multiply("fc1", Norm("norm1", x, of_x.mean, variance), kUnits));
      Add(of_x, "norm1", sums);
      Add(of_y, "norm2", sums);
    }
    return sums;
  }

  // Returns the mean test loss with the tensors' statistics.
  double TestLoss() const {
    std::vector<int64_t> samples(kTestedOn);
    for (size_t s = 0; s < samples.size(); ++s) samples[s] = static_cast<int64_t>(s);
    std::vector<ValueRow> rows = Read(Split::kTest, samples);
    rows = Multiply("fc1",
                    Norm("norm1", rows, Stored("norm1.running_mean"), Stored("norm1.running_var")),
                    kUnits);
    rows = Norm("norm2", rows, Stored("norm2.running_mean"), Stored("norm2.running_var"));
    for (ValueRow& row : rows) {
      for (double& value : row) value = std::max(value, 0.0);
    }
    rows = Multiply("fc2", rows, kTwoClasses);
    double loss = 0;
    for (size_t s = 0; s < rows.size(); ++s) {
      loss += std::log(std::exp(rows[s][0]) + std::exp(rows[s][1])) -
              rows[s][static_cast<size_t>(ClassOfWave(static_cast<int64_t>(s)))];
    }
    return loss / kTestedOn;
  }

 private:
  double At(const std::string& name, size_t i) const { return t_.at(name).at(i); }
  ValueRow Stored(const std::string& name) const {
    return {t_.at(name).begin(), t_.at(name).end()};
  }
  static void Add(const ColumnMoments& columns, const std::string& norm,
                  std::map<std::string, ValueRow>& sums) {
    const auto add = [&](const std::string& name, const ValueRow& values) {
      ValueRow& sum = sums[norm + name];
      sum.resize(values.size());
      for (size_t c = 0; c < values.size(); ++c) sum[c] += values[c] / kEstimateBatches;
    };
    add(".running_mean", columns.mean);
    add(".running_var", columns.variance);
  }

  const NamedTensors t_;
};

class EstimatedStateTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << kTwoNorms;
  }

  RunConfig Config(const std::string& output, const Keys& more) const {
    Keys keys = {"output=" + (folder_ / output).string(), "cluster.workers=3",
                 fmt::format("evaluate.statistics_samples={}", kEstimated)};
    keys.insert(keys.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits}\nbatch: 24\nepochs: 9\nmax_steps: 40\nthreads: 1\n"
            "solver: {name: sgd, lr: 0.2}\ncheckpoint: {keep: 100}\n",
        "run.yaml", keys);
    RunConfig config = ReadRunConfig(document);
    config.data.source = std::make_shared<OwnSource>(kTwoWaves);
    return config;
  }

  NamedTensors Stored(const std::string& run) const {
    const StoredWeights stored = ReadStoredWeights(FindCheckpoint((folder_ / run).string()));
    NamedTensors found;
    const auto add = [&](const ArenaLayout& of, const std::vector<float>& values) {
      for (const ArenaEntry& entry : of.entries) {
        found[entry.name].assign(values.begin() + entry.range.begin,
                                 values.begin() + entry.range.end);
      }
    };
    add(stored.layout.parameters, stored.weights);
    add(stored.layout.state, stored.state);
    return found;
  }

  // Returns the statistics of a worker of a saved run.
  std::vector<float> OwnStatistics(const std::string& run, Rank worker) const {
    const fs::path main = FindCheckpoint((folder_ / run).string());
    const RankCheckpoint file =
        ReadRankCheckpoint(main, worker, ReadStoredInfo(main).rank_files.at(worker));
    for (const StateField& field : file.host.fields) {
      if (field.name == "statistics") return field.floats;
    }
    return {};
  }

  static Summary Simulate(const RunConfig& config, const std::string& resume = "none") {
    SimulatedRun run(config, std::nullopt, true);
    run.KeepCheckpoints(config.output, resume);
    fs::create_directories(config.output);
    return run.Run();
  }
};

constexpr char kTwoGroups[] = "strategy={name: gssp, servers: 2, exchange_every: 5}";
constexpr char kApart[] = "strategy={name: local_sgd, period: 7}";

TEST_F(EstimatedStateTest, IsThatOfPlainLoopsAndIsEvaluatedAndSaved) {
  for (const char* strategy : {kTwoGroups, kApart}) {
    SCOPED_TRACE(strategy);
    fs::remove_all(folder_ / "run");
    const Summary summary = Run(Config("run", {strategy})).summary;
    const NamedTensors stored = Stored("run");
    const TwoNormsInDouble plain(stored);
    for (const auto& [name, wanted] : plain.Estimate()) {
      const std::vector<float>& got = stored.at(name);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t c = 0; c < got.size(); ++c) {
        EXPECT_NEAR(got[c], wanted[c], 1e-5 * (1 + std::abs(wanted[c]))) << name << ", " << c;
      }
    }
    EXPECT_NEAR(summary.test->loss, plain.TestLoss(), 1e-5);
  }
}

TEST_F(EstimatedStateTest, HasTheSameBitsForAnyNumberOfRanks) {
  const RunConfig config = Config("run", {kTwoGroups});
  const OwnDataSet data(kTwoWaves);
  const Graph graph = ReadModel(config, data.fields());
  const Sampler sampler(config.seed, data, config.batch);
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  std::vector<float> state(static_cast<size_t>(graph.state().size()));
  graph.InitializeWeights(1, weights.data());
  graph.InitializeState(state.data());
  const auto estimate = [&](int ranks, int64_t samples) {
    std::vector<std::vector<float>> found(static_cast<size_t>(ranks));
    LocalWorld::Run(ranks, [&](Transport& transport) {
      Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
      std::vector<float>& mine = found[transport.rank()];
      mine.resize(state.size());
      JoinStates(transport,
                 EstimateBatches(net, data, sampler, samples, weights.data(), state,
                                 transport.rank(), ranks),
                 mine);
    });
    for (const std::vector<float>& of_rank : found) EXPECT_EQ(of_rank, found[0]);
    return found[0];
  };
  for (const int64_t samples : {kEstimated, int64_t{257}, int64_t{100}}) {
    const std::vector<float> alone = estimate(1, samples);
    EXPECT_NE(alone, state);
    for (const int ranks : {2, 3, 5}) EXPECT_EQ(estimate(ranks, samples), alone) << samples;
  }
}

// In any other order 3 is lost beside 1e20.
TEST_F(EstimatedStateTest, AddsTheBatchesInTheirOrder) {
  const std::vector<float> of_batch = {1e20f, -1e20f, 3};
  for (const int ranks : {1, 2, 3}) {
    LocalWorld::Run(ranks, [&](Transport& transport) {
      std::vector<BatchState> mine;
      for (int64_t b = transport.rank(); b < kEstimateBatches; b += ranks) {
        mine.push_back({b, 200, {of_batch[static_cast<size_t>(b)]}});
      }
      std::vector<float> mean(1);
      JoinStates(transport, mine, mean);
      EXPECT_EQ(mean[0], 1) << ranks;
    });
  }
}

TEST_F(EstimatedStateTest, OfASimulatedRunIsThatOfARealOne) {
  const Summary real = Run(Config("run", {kApart})).summary;
  const Summary simulated = SimulatedRun(Config("simulated", {kApart}), std::nullopt, true).Run();
  EXPECT_EQ(simulated.weights_sha256, real.weights_sha256);
  EXPECT_EQ(simulated.test->loss, real.test->loss);
}

TEST_F(EstimatedStateTest, OfAReplayedRunIsThatOfTheRecordedOne) {
  const RunConfig config = Config("run", {kTwoGroups, "strategy.record=true"});
  const Summary summary = Run(config).summary;
  const RunRecord record = ReadRecord(folder_ / "run/record.bin");
  EXPECT_EQ(ReplayRecord(config, record), summary.weights_sha256);
}

TEST_F(EstimatedStateTest, OfAResumedRunIsThatOfTheWholeOne) {
  for (const char* strategy : {kTwoGroups, kApart}) {
    SCOPED_TRACE(strategy);
    const Keys keys = {strategy, "checkpoint.every_steps=15"};
    const Summary whole = Simulate(Config("whole", keys));
    const auto resume = [&](const std::string& run, const auto& train) {
      const CheckpointFolder folder(folder_ / run / "checkpoints", 1);
      fs::remove(folder.List().front());
      fs::remove(folder_ / run / "checkpoints/latest");
      fs::remove(folder_ / run / "summary.json");
      return train();
    };
    const Summary again = resume("whole", [&] { return Simulate(Config("whole", keys), "auto"); });
    EXPECT_EQ(again.weights_sha256, whole.weights_sha256);
    EXPECT_EQ(again.test->loss, whole.test->loss);
    fs::remove_all(folder_ / "whole");
    if (strategy == kTwoGroups) continue;  // a real asynchronous run does not repeat
    const RunConfig config = Config("whole", keys);
    const Summary real = Run(config).summary;
    EXPECT_EQ(
        resume("whole", [&] { return Run(config, {.resume = "auto"}).summary; }).weights_sha256,
        real.weights_sha256);
  }
}

TEST_F(EstimatedStateTest, LeavesTheWorkersStatisticsAlone) {
  for (const char* strategy : {kTwoGroups, kApart}) {
    SCOPED_TRACE(strategy);
    const Keys evaluated = {strategy, "evaluate.every_steps=10"};
    Keys mean = evaluated;
    mean.push_back("evaluate.statistics=mean");
    const Summary with = Simulate(Config("estimate", evaluated));
    const Summary without = Simulate(Config("mean", mean));
    EXPECT_NE(with.weights_sha256, without.weights_sha256);
    NamedTensors estimated = Stored("estimate");
    for (const auto& [name, values] : Stored("mean")) {
      EXPECT_EQ(estimated.at(name) == values, name.find("running") == std::string::npos) << name;
    }
    for (const Rank worker : {0, 1, 2}) {
      const std::vector<float> own = OwnStatistics("estimate", worker);
      ASSERT_EQ(own.size(), 2 * static_cast<size_t>(kNumbers + kUnits));
      EXPECT_EQ(own, OwnStatistics("mean", worker)) << worker;
    }
    fs::remove_all(folder_ / "estimate");
    fs::remove_all(folder_ / "mean");
  }
}

// Two replicas compute the same function: fc1, which a norm follows, is nine times as large in one as in the other.  So
// does their mean, but not with the mean of their statistics, since variances grow with the squares.
TEST_F(EstimatedStateTest, RestoresTheLossOfAMeanOfReplicas) {
  const RunConfig config = Config("run", {"strategy.name=allreduce", "max_steps=200"});
  Run(config);
  const OwnDataSet data(kTwoWaves);
  const Graph graph = ReadModel(config, data.fields());
  const Checkpoint trained =
      LoadWeights(FindCheckpoint((folder_ / "run").string()), ModelLayoutOf(graph));
  const auto scaled = [](std::vector<float> arena, const ArenaLayout& layout,
                         const std::string& name, double factor) {
    for (const ArenaEntry& entry : layout.entries) {
      if (!entry.name.starts_with(name)) continue;
      for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
        arena[i] = static_cast<float>(factor * arena[i]);
      }
    }
    return arena;
  };
  // Means over the factors 1 and 9.
  const std::vector<float> mean = scaled(trained.weights, graph.weights(), "fc1.", (1 + 9) / 2);
  std::vector<float> mean_of_states =
      scaled(trained.state, graph.state(), "norm2.running_mean", (1 + 9) / 2);
  mean_of_states = scaled(mean_of_states, graph.state(), "norm2.running_var", (1 + 81) / 2);
  LocalWorld::Run(1, [&](Transport& transport) {
    Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
    const auto estimate = [&](const std::vector<float>& weights) {
      std::vector<float> state(trained.state.size());
      JoinStates(transport,
                 EstimateBatches(net, data, Sampler(1, data, 24), kEstimated, weights.data(),
                                 trained.state, 0, 1),
                 state);
      return state;
    };
    const auto loss = [&](const std::vector<float>& weights, const std::vector<float>& state) {
      return JoinEvaluations(
                 transport, data,
                 EvaluateBlocks(net, data, Split::kTest, weights.data(), state.data(), 0, 1))
          .loss;
    };
    const double before = loss(trained.weights, estimate(trained.weights));
    EXPECT_LT(before, 0.3);
    EXPECT_NEAR(loss(mean, estimate(mean)), before, 1e-4);
    EXPECT_GT(loss(mean, mean_of_states), before + 0.01);
  });
}

TEST_F(EstimatedStateTest, IsMadeWhereTheModelIsAMeanOfReplicas) {
  const OwnDataSet data(kTwoWaves);
  const auto samples = [&](const Keys& keys, const std::string& frozen = "") {
    const RunConfig config = Config("run", keys);
    Graph graph = ReadModel(config, data.fields());
    if (!frozen.empty()) graph.Freeze(frozen);
    return SamplesOfEstimate(config, graph, data);
  };
  EXPECT_EQ(samples({kTwoGroups}), kEstimated);
  EXPECT_EQ(samples({kApart}), kEstimated);
  EXPECT_EQ(samples({kApart, "evaluate.statistics_samples=5000"}), kTrainedOn);
  EXPECT_EQ(samples({kTwoGroups, "evaluate.statistics=mean"}), 0);
  EXPECT_EQ(samples({kApart, "cluster.workers=1"}), 0) << "one replica";
  EXPECT_EQ(samples({kTwoGroups}, "norm1"), kEstimated);
  EXPECT_EQ(samples({kTwoGroups}, "norm*"), 0) << "all frozen";
  for (const std::string other : {"allreduce", "ps_bsp", "ps_ssp", "easgd"}) {
    EXPECT_EQ(samples({"strategy.name=" + other}), 0) << other;
    EXPECT_EQ(samples({"strategy.name=" + other, "evaluate.statistics=estimate"}), kEstimated);
  }
  std::ofstream(folder_ / "model.yaml")
      << "name: plain\nlayers:\n  - {name: fc, type: inner_product, outputs: 2}\n"
         "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";
  EXPECT_EQ(samples({kTwoGroups, "evaluate.statistics=estimate"}), 0) << "nothing to estimate";
}

}  // namespace
}  // namespace dtrain
