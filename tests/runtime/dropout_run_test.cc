// Whole runs of a model with dropout against a plain loop in double precision, with masks from counted_random.h: seed,
// step, layer and position in the global batch must all reach the kernel.  The initial weights
// (Graph::InitializeWeights) and the order of an epoch's samples (Sampler::Shuffle) are taken as given.
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
#include "tests/support/counted_random.h"

namespace dtrain {
namespace {

// The last batch has 6 samples.
constexpr int64_t kDropSamples = 22, kDropBatch = 8, kDropSteps = 3;
constexpr int64_t kPixels = 3, kHidden = 10, kClasses = 2;
constexpr double kRatio = 0.5, kLearningRate = 0.25;
constexpr uint64_t kDropLayer = 1;
constexpr int64_t kSteps = 10;

constexpr char kModel[] = R"(
name: dropping
layers:
  - {name: first, type: inner_product, outputs: 10}
  - {name: drop, type: dropout, ratio: 0.5}
  - {name: fc, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";

double Pixel(int64_t sample, int64_t i) { return std::sin(static_cast<double>(3 * sample + i)); }
int64_t LabelOf(int64_t sample) { return Pixel(sample, 0) + Pixel(sample, 1) > 0 ? 1 : 0; }

const OwnData kWaves = {.train_samples = kDropSamples,
                        .test_samples = 4,
                        .numbers = kPixels,
                        .classes = kClasses,
                        .number = [](Split, int64_t sample, int64_t i) { return Pixel(sample, i); },
                        .label = LabelOf};

// Two affine maps with dropout between them, trained by SGD.
struct Plain {
  std::vector<double> w1, b1, w2, b2;

  // Makes the step with the samples of `batch`, in the order of the global batch.
  void Step(const std::vector<int64_t>& batch, uint64_t seed, uint64_t step) {
    Plain gradient = {std::vector<double>(w1.size()), std::vector<double>(b1.size()),
                      std::vector<double>(w2.size()), std::vector<double>(b2.size())};
    for (size_t p = 0; p < batch.size(); ++p) {
      double kept[kHidden], hidden[kHidden], score[kClasses], sum = 0;
      for (int64_t h = 0; h < kHidden; ++h) {
        const bool dropped =
            counted_random::Dropped(kRatio, seed, kDropLayer, step, static_cast<int64_t>(p), h);
        kept[h] = dropped ? 0 : 1 / (1 - kRatio);
        hidden[h] = b1[h];
        for (int64_t i = 0; i < kPixels; ++i) hidden[h] += w1[h * kPixels + i] * Pixel(batch[p], i);
        hidden[h] *= kept[h];
      }
      for (int64_t c = 0; c < kClasses; ++c) {
        score[c] = b2[c];
        for (int64_t h = 0; h < kHidden; ++h) score[c] += w2[c * kHidden + h] * hidden[h];
        sum += std::exp(score[c]);
      }
      for (int64_t c = 0; c < kClasses; ++c) {
        const double by_score = (std::exp(score[c]) / sum - (c == LabelOf(batch[p]) ? 1 : 0)) /
                                static_cast<double>(batch.size());
        gradient.b2[c] += by_score;
        for (int64_t h = 0; h < kHidden; ++h) {
          gradient.w2[c * kHidden + h] += by_score * hidden[h];
          const double by_hidden = by_score * w2[c * kHidden + h] * kept[h];
          gradient.b1[h] += by_hidden;
          for (int64_t i = 0; i < kPixels; ++i) {
            gradient.w1[h * kPixels + i] += by_hidden * Pixel(batch[p], i);
          }
        }
      }
    }
    const auto descend = [](std::vector<double>& to, const std::vector<double>& by) {
      for (size_t i = 0; i < to.size(); ++i) to[i] -= kLearningRate * by[i];
    };
    descend(w1, gradient.w1), descend(b1, gradient.b1);
    descend(w2, gradient.w2), descend(b2, gradient.b2);
  }
};

class DropoutRunTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "model.yaml") << kModel;
  }

  RunConfig Config(uint64_t seed, std::vector<std::string> more) const {
    std::vector<std::string> overrides = {"output=" + (folder_ / "run").string(), "threads=1",
                                          fmt::format("max_steps={}", kSteps),
                                          fmt::format("seed={}", seed)};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: " + (folder_ / "model.yaml").string() +
            "}\ndata: {name: digits}\nbatch: 8\nepochs: 9\n"
            "solver: {name: sgd, lr: 0.25, momentum: 0, weight_decay: 0}\n",
        "run.yaml", overrides);
    RunConfig config = ReadRunConfig(document);
    config.data.source = std::make_shared<OwnSource>(kWaves);
    return config;
  }

  Graph Model() const { return Graph::FromText(kModel, "model.yaml", kWaves.fields()); }

  static Plain Cut(const Graph& graph, const std::vector<float>& weights) {
    const auto of = [&](const std::string& name) {
      for (const ArenaEntry& e : graph.weights().entries) {
        if (e.name != name) continue;
        return std::vector<double>(weights.begin() + e.range.begin, weights.begin() + e.range.end);
      }
      ADD_FAILURE() << "no parameter " << name;
      return std::vector<double>();
    };
    return {of("first.weight"), of("first.bias"), of("fc.weight"), of("fc.bias")};
  }

  // Returns the weights after kSteps steps, from the same initial weights and in the same order of samples.
  Plain Expected(uint64_t seed) const {
    const Graph graph = Model();
    std::vector<float> start(static_cast<size_t>(graph.weights().size()));
    graph.InitializeWeights(seed, start.data());
    Plain plain = Cut(graph, start);
    const Sampler sampler(seed, kDropSamples, kDropBatch);
    for (int64_t step = 0; step < kSteps; ++step) {
      std::vector<int64_t> order;
      sampler.Shuffle(static_cast<uint64_t>(step / kDropSteps), order);
      const int64_t begin = step % kDropSteps * kDropBatch;
      const int64_t end = std::min(begin + kDropBatch, kDropSamples);
      plain.Step({order.begin() + begin, order.begin() + end}, seed, static_cast<uint64_t>(step));
    }
    return plain;
  }

  // Trained weights are between 0.1 and 1, and another mask in one step moves them by 0.01; the error of fp32 after ten
  // steps is about 1e-6.
  void ExpectRunToBe(const Plain& expected, uint64_t seed, const std::vector<std::string>& more) {
    std::filesystem::remove_all(folder_ / "run");
    Run(Config(seed, more));
    const Graph graph = Model();
    const Checkpoint saved =
        LoadWeights(FindCheckpoint(folder_ / "run"), {graph.weights(), graph.state(), ""});
    const Plain trained = Cut(graph, saved.weights);
    const auto expect_near = [](const std::vector<double>& values,
                                const std::vector<double>& wanted) {
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 5e-6) << i;
    };
    expect_near(trained.w1, expected.w1), expect_near(trained.b1, expected.b1);
    expect_near(trained.w2, expected.w2), expect_near(trained.b2, expected.b2);
  }
};

TEST_F(DropoutRunTest, FollowsThePlainLoopForAnyWorkersAndMicroBatches) {
  for (const uint64_t seed : {1, 7}) {
    const Plain expected = Expected(seed);
    for (const auto& more : std::vector<std::vector<std::string>>{
             {},
             {"accumulate=3"},
             {"cluster.workers=2"},
             {"cluster.workers=3", "accumulate=2"},
             {"cluster.workers=3", "strategy={name: ps_bsp, placement: colocated}"},
             {"strategy={name: ps_asp, placement: colocated}"}}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " " << testing::PrintToString(more));
      ExpectRunToBe(expected, seed, more);
    }
  }
}

TEST_F(DropoutRunTest, AResumedRunGoesOnWithTheMasksOfItsSteps) {
  Run(Config(1, {"cluster.workers=2", "max_steps=4"}));
  Run(Config(1, {"cluster.workers=2"}), {.resume = "auto", .weights = ""});
  const Graph graph = Model();
  const Plain trained = Cut(
      graph,
      LoadWeights(FindCheckpoint(folder_ / "run"), {graph.weights(), graph.state(), ""}).weights);
  const Plain expected = Expected(1);
  for (size_t i = 0; i < expected.w2.size(); ++i) EXPECT_NEAR(trained.w2[i], expected.w2[i], 5e-6);
}

TEST_F(DropoutRunTest, ASimulatedRunDropsAlike) {
  const RunConfig config = Config(7, {"cluster.workers=3"});
  const std::string real = Run(config).summary.weights_sha256;
  EXPECT_EQ(SimulatedRun(config, std::nullopt, true).Run().weights_sha256, real);
}

}  // namespace
}  // namespace dtrain
