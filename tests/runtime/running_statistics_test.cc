// Compares the running statistics of several workers with plain loops.  The model normalises its input, so that a
// worker's statistics depend on its samples alone.  The order of an epoch's samples (Sampler::Shuffle) is taken as
// given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/data/sampler.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

// Shares of 3, 3 and 2 samples; the last batch has 6 samples, three shares of 2.
constexpr int64_t kSamples = 22, kBatch = 8, kStepsAnEpoch = 3, kWorkers = 3;
constexpr int64_t kTestSamples = 600;  // enough for a block on each of the ranks
constexpr int64_t kChannels = 2, kClasses = 2;
constexpr double kMomentum = 0.25, kEpsilon = 1e-5;

constexpr char kModel[] = R"(
name: normed
layers:
  - {name: norm, type: batch_norm, momentum: 0.25}
  - {name: fc, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

double Value(Split split, int64_t sample, int64_t c) {
  const double wave = std::sin(static_cast<double>(7 * sample + 3 * c));
  return split == Split::kTrain ? (c + 1) * wave + 2 * std::cos(sample) + 1 : 3 * wave;
}
int64_t LabelOf(int64_t sample) { return sample % 3 == 0 ? 1 : 0; }

const OwnData kWaves = {.train_samples = kSamples,
                        .test_samples = kTestSamples,
                        .numbers = kChannels,
                        .classes = kClasses,
                        .number = Value,
                        .label = LabelOf};

struct Statistics {
  double mean[kChannels] = {0, 0}, variance[kChannels] = {1, 1};

  // Updates with a batch of these samples, with the unbiased variance as in PyTorch.
  void Move(const std::vector<int64_t>& samples) {
    const auto count = static_cast<double>(samples.size());
    for (int64_t c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (const int64_t s : samples) sum += Value(Split::kTrain, s, c);
      for (const int64_t s : samples) {
        squares += std::pow(Value(Split::kTrain, s, c) - sum / count, 2);
      }
      mean[c] = (1 - kMomentum) * mean[c] + kMomentum * sum / count;
      variance[c] = (1 - kMomentum) * variance[c] + kMomentum * squares / (count - 1);
    }
  }
};

// Runs steps [first, last) of three workers that all start from `start`.  Returns the mean of their statistics,
// weighted by full shares.
Statistics After(const Statistics& start, int64_t first, int64_t last) {
  const int64_t full[kWorkers] = {3, 3, 2}, tail[kWorkers] = {2, 2, 2};
  Statistics workers[kWorkers] = {start, start, start};
  const Sampler sampler(1, kSamples, kBatch);
  for (int64_t step = first; step < last; ++step) {
    std::vector<int64_t> order;
    sampler.Shuffle(static_cast<uint64_t>(step / kStepsAnEpoch), order);
    auto next = order.begin() + step % kStepsAnEpoch * kBatch;
    for (int64_t w = 0; w < kWorkers; ++w) {
      const int64_t share = (step % kStepsAnEpoch == kStepsAnEpoch - 1 ? tail : full)[w];
      workers[w].Move({next, next + share});
      next += share;
    }
  }
  Statistics mean;
  for (int64_t c = 0; c < kChannels; ++c) {
    mean.mean[c] = mean.variance[c] = 0;
    for (int64_t w = 0; w < kWorkers; ++w) {
      mean.mean[c] += workers[w].mean[c] * static_cast<double>(full[w]) / kBatch;
      mean.variance[c] += workers[w].variance[c] * static_cast<double>(full[w]) / kBatch;
    }
  }
  return mean;
}

class RunningStatisticsTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << kModel;
  }

  RunConfig Config(const std::string& output, int64_t steps, const std::string& strategy) const {
    const std::vector<std::string> overrides = {
        "output=" + (folder_ / output).string(), "threads=1",
        fmt::format("cluster.workers={}", kWorkers), fmt::format("max_steps={}", steps),
        "strategy=" + strategy};
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits}\nbatch: 8\nepochs: 9\nsolver: {name: sgd, lr: 0.1}\n",
        "run.yaml", overrides);
    RunConfig config = ReadRunConfig(document);
    config.data.source = std::make_shared<OwnSource>(kWaves);
    return config;
  }

  Checkpoint Saved(const std::string& output) const {
    const Graph graph = Graph::FromText(kModel, "model.yaml", kWaves.fields());
    layout_ = {graph.weights(), graph.state(), ""};
    return LoadWeights(FindCheckpoint(folder_ / output), layout_);
  }

  static const float* In(const std::vector<float>& arena, const ArenaLayout& layout,
                         const std::string& name) {
    for (const ArenaEntry& entry : layout.entries) {
      if (entry.name == name) return arena.data() + entry.range.begin;
    }
    throw std::runtime_error("nothing is called " + name);
  }

  // The tolerance covers rounding to fp32 in each of about ten steps, and the sums of a batch.
  void ExpectSaved(const std::string& output, const Statistics& wanted) const {
    const Checkpoint saved = Saved(output);
    const float* const mean = In(saved.state, layout_.state, "norm.running_mean");
    const float* const variance = In(saved.state, layout_.state, "norm.running_var");
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(mean[c], wanted.mean[c], 2e-6) << output << ", channel " << c;
      EXPECT_NEAR(variance[c], wanted.variance[c], 5e-6) << output << ", channel " << c;
    }
  }

  // Returns the test loss of a run's weights with these statistics.
  double TestLoss(const std::string& output, const Statistics& statistics) const {
    const Checkpoint saved = Saved(output);
    const auto of = [&](const std::string& name) {
      return In(saved.weights, layout_.parameters, name);
    };
    double loss = 0;
    for (int64_t s = 0; s < kTestSamples; ++s) {
      double score[kClasses], sum = 0;
      for (int64_t k = 0; k < kClasses; ++k) {
        score[k] = of("fc.bias")[k];
        for (int64_t c = 0; c < kChannels; ++c) {
          const double normal = (Value(Split::kTest, s, c) - statistics.mean[c]) /
                                std::sqrt(statistics.variance[c] + kEpsilon);
          score[k] += of("fc.weight")[k * kChannels + c] *
                      (of("norm.weight")[c] * normal + of("norm.bias")[c]);
        }
        sum += std::exp(score[k]);
      }
      loss += std::log(sum) - score[LabelOf(s)];
    }
    return loss / kTestSamples;
  }

  mutable ModelLayout layout_;
};

const char* const kStrategies[] = {"{name: allreduce}", "{name: ps_bsp, placement: colocated}",
                                   "{name: ps_bsp, placement: dedicated, servers: 2}"};

TEST_F(RunningStatisticsTest, AreEvaluatedAndSavedAsTheMeanByShares) {
  for (const char* strategy : kStrategies) {
    SCOPED_TRACE(strategy);
    std::filesystem::remove_all(folder_ / "run");
    const Summary summary = Run(Config("run", 10, strategy)).summary;
    const Statistics wanted = After({}, 0, 10);
    ExpectSaved("run", wanted);
    EXPECT_NEAR(summary.test->loss, TestLoss("run", wanted), 1e-6);
  }
}

TEST_F(RunningStatisticsTest, GoOnFromTheMeanAfterAResume) {
  Run(Config("run", 4, "{name: allreduce}"));
  const Summary summary =
      Run(Config("run", 10, "{name: allreduce}"), {.resume = "auto", .weights = ""}).summary;
  const Statistics wanted = After(After({}, 0, 4), 4, 10);
  ExpectSaved("run", wanted);
  EXPECT_NEAR(summary.test->loss, TestLoss("run", wanted), 1e-6);
}

TEST_F(RunningStatisticsTest, BeginAsGivenWeightsSay) {
  Run(Config("first", 5, "{name: allreduce}"));
  for (const char* strategy : kStrategies) {
    SCOPED_TRACE(strategy);
    std::filesystem::remove_all(folder_ / "second");
    const Summary summary = Run(Config("second", 2, strategy),
                                {.resume = "none", .weights = (folder_ / "first").string()})
                                .summary;
    const Statistics wanted = After(After({}, 0, 5), 0, 2);
    ExpectSaved("second", wanted);
    EXPECT_NEAR(summary.test->loss, TestLoss("second", wanted), 1e-6);
  }
}

TEST_F(RunningStatisticsTest, AreThoseOfASimulatedRun) {
  const RunConfig config = Config("run", 10, "{name: allreduce}");
  const Summary real = Run(config).summary;
  const Summary simulated = SimulatedRun(config, std::nullopt, true).Run();
  EXPECT_EQ(simulated.weights_sha256, real.weights_sha256);
  EXPECT_NEAR(simulated.test->loss, TestLoss("run", After({}, 0, 10)), 1e-6);
}

}  // namespace
}  // namespace dtrain
