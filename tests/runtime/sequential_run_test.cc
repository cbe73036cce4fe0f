// Whole small runs against a plain sequential loop: softmax regression on a few digits, computed in double by the loops
// below, with the shares, micro-batches, clipping, schedule and solver of the config.  The run's last checkpoint must
// equal the loop's end - uninterrupted, and resumed in the middle of an epoch and of the warm-up.  The initial weights
// (Graph::InitializeWeights) and the order of an epoch's samples (Sampler::Shuffle) are taken as given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/data/sampler.h"
#include "framework/setup/run_setup.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/plain_loop.h"

namespace dtrain {
namespace {

constexpr int64_t kDigits = 49;  // three batches of 16, and one with too few samples for one worker
constexpr int64_t kDigitsAStep = 16;
constexpr int64_t kEpochs = 3;
constexpr int64_t kSteps = 12;
constexpr int64_t kStopped = 5;  // in the second epoch and in the warm-up
constexpr int64_t kPixels = 784;
constexpr int64_t kDigitClasses = 10;

// Kernels add in fp32, the loop in double.  The tolerances are about four times the largest differences seen: 7e-8 of
// weights, 7e-7 of momenta (which reach 1), 4e-8 and 2e-10 of Adam's means.
constexpr double kOfWeights = 3e-7, kOfMomentum = 3e-6, kOfMean = 2e-7, kOfSquare = 1e-9;

struct Way {
  const char* strategy;
  int workers;
  int accumulate;
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << fmt::format("{}, {} workers, accumulate {}", way.strategy, way.workers, way.accumulate);
}

plain::Rule Sgd() {
  return {.lr = 0.02,
          .nesterov = true,
          .weight_decay = 0.01,
          .clip_norm = 4,
          .schedule = "step",
          .every = 0.6,
          .factor = 0.7,
          .warmup_epochs = 1.6,
          .lr_scaling = "sqrt"};
}

plain::Rule Adam() {
  return {.name = "adam",
          .lr = 0.005,
          .epsilon = 1e-3,
          .weight_decay = 0.01,
          .clip_norm = 4,
          .schedule = "cosine",
          .to = 0.05,
          .warmup_epochs = 1.6,
          .lr_scaling = "linear"};
}

// All training digits in index order.
struct Digits {
  explicit Digits(const Dataset& dataset) : batch(dataset.fields(), kDigits) {
    std::vector<int64_t> indices(kDigits);
    std::iota(indices.begin(), indices.end(), 0);
    batch.Resize(kDigits);
    dataset.Fill(Split::kTrain, indices, kNoEpoch, batch);
  }
  const float* Image(int64_t i) const {
    return static_cast<const float*>(batch.fields[0].data) + i * kPixels;
  }
  int64_t Label(int64_t i) const { return static_cast<const int32_t*>(batch.fields[1].data)[i]; }

  Batch batch;
};

// y = w x + b with softmax and cross-entropy.
class Regression {
 public:
  Regression(const ArenaLayout& layout, const Digits& digits) : digits_(digits) {
    for (const ArenaEntry& entry : layout.entries) {
      (entry.name == "fc.bias" ? bias_ : weight_) = entry.range.begin;
    }
  }

  // Returns the gradient of these samples, divided by `all`; adds their losses to `loss`.
  std::vector<float> Gradient(const std::vector<float>& weights, const int64_t* samples,
                              int64_t count, int64_t all, double& loss) const {
    std::vector<double> sum(weights.size());
    for (int64_t n = 0; n < count; ++n) {
      const float* const x = digits_.Image(samples[n]);
      std::vector<double> p = Softmax(weights, x);
      loss -= std::log(p[digits_.Label(samples[n])]);
      p[digits_.Label(samples[n])] -= 1;
      for (int64_t c = 0; c < kDigitClasses; ++c) {
        sum[bias_ + c] += p[c];
        for (int64_t i = 0; i < kPixels; ++i) sum[weight_ + c * kPixels + i] += p[c] * x[i];
      }
    }
    std::vector<float> gradient(sum.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      gradient[i] = static_cast<float>(sum[i] / static_cast<double>(all));
    }
    return gradient;
  }

 private:
  std::vector<double> Softmax(const std::vector<float>& weights, const float* x) const {
    std::vector<double> p(kDigitClasses);
    double total = 0;
    for (int64_t c = 0; c < kDigitClasses; ++c) {
      double y = weights[bias_ + c];
      for (int64_t i = 0; i < kPixels; ++i) y += double{weights[weight_ + c * kPixels + i]} * x[i];
      total += p[c] = std::exp(y);
    }
    for (double& share : p) share /= total;
    return p;
  }

  const Digits& digits_;
  int64_t weight_ = 0, bias_ = 0;
};

double Farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double farthest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    farthest = std::max(farthest, std::abs(double{a[i]} - b[i]));
  }
  return farthest;
}

class SequentialRunTest : public RunFixture,
                          public testing::WithParamInterface<std::tuple<Way, plain::Rule>> {
 protected:
  const Way& way() const { return std::get<0>(GetParam()); }
  const plain::Rule& rule() const { return std::get<1>(GetParam()); }

  void SetUp() override {
    RunFixture::SetUp();
    std::ofstream(folder_ / "regression.yaml")
        << "name: regression\nlayers:\n  - {name: fc, type: inner_product, outputs: 10}\n"
           "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";
  }

  RunConfig Config(const std::string& output, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"output=" + (folder_ / output).string(),
                             fmt::format("cluster.workers={}", way().workers),
                             fmt::format("data.train_samples={}", kDigits), "data.test_samples=20",
                             "threads=1", "log_first_steps=100"});
    config::Document document = config::Document::FromText(
        fmt::format("model: {{name: {}}}\ndata: {{name: digits}}\nbatch: {}\nepochs: {}\n"
                    "accumulate: {}\nstrategy: {}\nsolver: {}\n",
                    (folder_ / "regression.yaml").string(), kDigitsAStep, kEpochs, way().accumulate,
                    way().strategy, plain::Text(rule())),
        "run.yaml", more);
    return ReadRunConfig(document);
  }

  // Runs the plain loop.
  void RunPlain(const RunConfig& config) {
    const std::unique_ptr<Dataset> dataset = LoadData(config);
    const Graph graph = ReadModel(config, dataset->fields());
    const Digits digits(*dataset);
    const Regression regression(graph.weights(), digits);
    const Sampler sampler(config.seed, *dataset, kDigitsAStep);
    const bool at_server = config.strategy->Place(1).servers > 0;
    synchronous_ = config.strategy->traits().lockstep;
    std::vector<float> initial(static_cast<size_t>(graph.weights().size()));
    graph.InitializeWeights(config.seed, initial.data());
    layout_ = ModelLayoutOf(graph);
    expected_ = std::make_unique<plain::Model>(rule(), graph.weights(), initial);
    expected_->epochs = static_cast<double>(kEpochs);
    expected_->epoch_samples = kDigits;
    expected_->workers = way().workers;
    std::vector<int64_t> order;
    const plain::Batches batches{kDigits, kDigitsAStep};
    for (int64_t step = 0; step < kSteps; ++step) {
      sampler.Shuffle(static_cast<uint64_t>(step / 4), order);
      const int64_t* samples = order.data() + step % 4 * kDigitsAStep;
      const int64_t all = batches.OfStep(step);
      std::vector<std::vector<float>> gradients;
      double loss = 0;
      for (int w = 0; w < way().workers; ++w) {
        const int64_t own = plain::PartOf(all, way().workers, w);
        gradients.push_back(regression.Gradient(expected_->weights, samples, own, all, loss));
        samples += own;
        if (at_server) plain::ShortenAtWorker(rule(), own, all, gradients.back());
      }
      losses_.push_back(loss / static_cast<double>(all));
      if (at_server) {
        for (int w = 1; w < way().workers; ++w) {
          for (size_t i = 0; i < initial.size(); ++i) gradients[0][i] += gradients[w][i];
        }
        expected_->Update(gradients[0], all);
      } else {
        expected_->UpdateTogether(gradients, all);
      }
    }
  }

  // Checks the last checkpoint of the run in folder_/output, and the losses of its steps.
  void ExpectPlain(const std::string& output) const {
    const Checkpoint end =
        ReadCheckpoint(folder_ / output / "checkpoints" / "step-00000012.h5", layout_);
    EXPECT_EQ(end.info.position, (TrainingPosition{kEpochs, kSteps, expected_->samples, kSteps}));
    EXPECT_LT(Farthest(end.weights, expected_->weights), kOfWeights);
    if (rule().adaptive()) {
      ASSERT_EQ(end.solver.size(), 2u);
      EXPECT_LT(Farthest(end.solver.at("exp_avg"), expected_->first), kOfMean);
      EXPECT_LT(Farthest(end.solver.at("exp_avg_sq"), expected_->second), kOfSquare);
    } else {
      ASSERT_EQ(end.solver.size(), 1u);
      EXPECT_LT(Farthest(end.solver.at("momentum"), expected_->first), kOfMomentum);
    }
    // An asynchronous run has lines for batches in the order in which rank 0 learns of them.
    if (!synchronous_) return;
    const std::vector<nlohmann::json> lines = Lines(output, "step");
    ASSERT_EQ(lines.size(), losses_.size());
    for (size_t step = 0; step < losses_.size(); ++step) {
      EXPECT_NEAR(lines[step]["loss"], losses_[step], 1e-5 * losses_[step]) << "step " << step;
    }
  }

  ModelLayout layout_;
  std::unique_ptr<plain::Model> expected_;
  std::vector<double> losses_;
  bool synchronous_ = true;
};

TEST_P(SequentialRunTest, EndsWhereThePlainLoopEnds) {
  const RunConfig config = Config("whole");
  RunPlain(config);
  const std::string whole = Run(config).summary.weights_sha256;
  ExpectPlain("whole");
  Run(Config("part", {fmt::format("max_steps={}", kStopped)}));
  EXPECT_EQ(Run(Config("part"), {.resume = "auto", .weights = ""}).summary.weights_sha256, whole);
  ExpectPlain("part");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SequentialRunTest,
    ::testing::Combine(
        ::testing::Values(Way{"{name: allreduce}", 1, 1}, Way{"{name: allreduce}", 1, 3},
                          Way{"{name: allreduce}", 2, 1},
                          Way{"{name: allreduce, fusion_bytes: 0}", 3, 3},
                          Way{"{name: ps_bsp}", 3, 1}, Way{"{name: ps_bsp, servers: 3}", 2, 3},
                          Way{"{name: ps_bsp, servers: 3, placement: colocated}", 3, 1},
                          Way{"{name: ps_asp, servers: 3}", 1, 2},
                          Way{"{name: ps_ssp, placement: colocated}", 1, 1}),
        ::testing::Values(Sgd(), Adam())));

class AsynchronousCheckpointTest : public RunFixture {};

// The server makes Adam's steps: one for every gradient, not for every global batch.
TEST_F(AsynchronousCheckpointTest, CountsTheUpdatesOfItsServers) {
  config::Document document = config::Document::FromText(
      "model: {name: " DTRAIN_SOURCE_DIR
      "/configs/models/lenet5.yaml}\ndata: {name: digits, train_samples: 160, test_samples: 20}\n"
      "batch: 32\nepochs: 2\nthreads: 1\ncluster: {workers: 2}\nsolver: {name: adam}\n"
      "strategy: {name: ps_asp, servers: 2}\noutput: " +
          (folder_ / "run").string(),
      "run.yaml");
  const TrainResult result = Run(ReadRunConfig(document));
  int64_t gradients = 0;
  for (const WorkerSummary& worker : result.summary.workers_detail) gradients += worker.own_steps;
  const TrainingPosition position =
      ReadStoredInfo(FindCheckpoint((folder_ / "run").string())).position;
  EXPECT_EQ(position.updates, gradients);
  EXPECT_EQ(position.samples_applied, 16 * gradients);
  EXPECT_GE(gradients, 2 * position.step);
}

}  // namespace
}  // namespace dtrain
