// Tests asynchronous strategies with a predictable order of events: workers of known speeds on a link that takes no
// time.  A plain loop over the ends of their steps applies the same gradients in that order, and must end with the same
// bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/sim/known_order.h"

namespace dtrain {
namespace {

constexpr int64_t kNever = int64_t{1} << 40;

struct Keys {
  int64_t bound = kNever;  // ps_ssp
  bool share = true;
  bool damping = false;
  bool prefetch = false;
};

// The plain loop.  It has, for each worker, the weights of its step and their version.
class Loop {
 public:
  Loop(const plain::Model& model, const Keys& keys, int64_t last_samples)
      : model_(model), keys_(keys), last_samples_(last_samples) {
    for (size_t w = 0; w < kSlowdown.size(); ++w) {
      workers_.push_back({model.weights, model.weights});
      Start(static_cast<int>(w), 0);
    }
  }

  const plain::Model& Run() {
    while (true) {
      const auto next =
          std::min_element(workers_.begin(), workers_.end(),
                           [](const Worker& a, const Worker& b) { return a.ends < b.ends; });
      if (next->ends == kIdle) return model_;
      End(static_cast<int>(next - workers_.begin()));
    }
  }

  int64_t longest_wait() const { return longest_wait_; }

 private:
  static constexpr double kIdle = 1e9;
  struct Worker {
    std::vector<float> weights;     // of the step in progress
    std::vector<float> prefetched;  // of the next step
    int64_t updates = 0, prefetched_updates = 0;
    int64_t steps = 0;  // steps finished
    double ends = kIdle;
    bool waits = false;
  };

  void Start(int w, double now) {
    Worker& worker = workers_[w];
    if (keys_.prefetch) {
      worker.weights = worker.prefetched;
      worker.updates = worker.prefetched_updates;
      worker.prefetched = model_.weights;
      worker.prefetched_updates = model_.updates;
    } else {
      worker.weights = model_.weights;
      worker.updates = model_.updates;
    }
    worker.waits = false;
    worker.ends = now + kSlowdown[w];
    started_ += SamplesOf(w);
  }

  void End(int w) {
    Worker& worker = workers_[w];
    std::vector<float> gradient = plain::GradientOf(w, worker.steps, worker.weights.data(), kSize);
    plain::ShortenAtWorker(model_.rule, 1, 1, gradient);
    double share = keys_.share ? 1.0 / static_cast<double>(workers_.size()) : 1.0;
    const int64_t staleness = model_.updates - worker.updates;
    if (keys_.damping && staleness > 1) share /= static_cast<double>(staleness);
    model_.Update(gradient, SamplesOf(w), 1, share);
    const double now = std::exchange(worker.ends, kIdle);
    ++worker.steps;
    worker.waits = true;
    if (started_ < last_samples_) Release(now);
  }

  void Release(double now) {
    int64_t slowest = kNever;
    for (const Worker& worker : workers_) slowest = std::min(slowest, worker.steps);
    int64_t waiting = 0;
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (!workers_[w].waits) continue;
      if (workers_[w].steps - slowest <= keys_.bound) {
        Start(static_cast<int>(w), now);
      } else {
        ++waiting;
      }
    }
    longest_wait_ = std::max(longest_wait_, waiting);
  }

  plain::Model model_;
  const Keys keys_;
  const int64_t last_samples_;
  std::vector<Worker> workers_;
  int64_t started_ = 0;
  int64_t longest_wait_ = 0;
};

struct Way {
  const char* strategy;
  const char* keys;
  Keys meaning;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.strategy << ", " << way.keys; }

class AsynchronousOrderTest : public ::testing::TestWithParam<std::tuple<Way, plain::Rule>> {};

TEST_P(AsynchronousOrderTest, EndsWithTheWeightsOfTheSequentialLoop) {
  const auto& [way, rule] = GetParam();
  Scenario scenario(way.strategy, 3, way.keys);
  const SimulationResult result = RunInKnownOrder(scenario, rule);

  Loop loop(StartOfKnownOrder(rule), way.meaning, kLastSamples);
  const plain::Model& expected = loop.Run();
  EXPECT_EQ(result.end.samples_applied, expected.samples);
  EXPECT_EQ(result.protocol.gradients(), expected.updates);
  EXPECT_EQ(result.weights, expected.weights);
  EXPECT_EQ(loop.longest_wait() > 0, way.meaning.bound < kNever) << "somebody has waited";
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, AsynchronousOrderTest,
    ::testing::Combine(
        ::testing::Values(
            Way{"ps_asp", "servers: 1", {}}, Way{"ps_asp", "servers: 3", {}},
            Way{"ps_asp", "servers: 2, placement: colocated, scale: one", {.share = false}},
            Way{"ps_asp", "servers: 2, damping: inverse", {.damping = true}},
            Way{"ps_asp", "servers: 2, prefetch: true", {.prefetch = true}},
            Way{"ps_ssp", "servers: 1, staleness: 0", {.bound = 0}},
            Way{"ps_ssp",
                "servers: 3, staleness: 1, damping: inverse",
                {.bound = 1, .damping = true}},
            Way{"ps_dssp", "staleness: 1, staleness_max: 1", {.bound = 1}},
            Way{"gssp", "servers: 1, staleness: 0", {.bound = 0}},
            Way{"gssp", "servers: 1, staleness: 1, placement: colocated", {.bound = 1}}),
        ::testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(5))));

}  // namespace
}  // namespace dtrain
