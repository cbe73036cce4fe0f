// Tests GSSP as its published code has it: gradients divided by the number of workers, and group servers with a momentum
// of their own (gssp.md 3.2, 3.3).  A plain loop over the ends of the workers' steps is the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/sim/known_order.h"

namespace dtrain {
namespace {

constexpr double kEnded = 1e9;

// A group's server: its replica, and the gradients that the other group has not had.
struct Replica {
  plain::Model model;
  int members = 0;
  std::vector<float> acc = std::vector<float>(kSize, 0.0f);
  int gradients = 0;
};

// Applies the gradients in `from` as one sum to `to`.
void Synchronise(Replica& from, Replica& to) {
  if (from.gradients == 0) return;
  to.model.Update(from.acc, 0, 1.0f / static_cast<float>(kSlowdown.size()));
  from.acc.assign(kSize, 0.0f);
  from.gradients = 0;
}

// Returns the replicas at the end of a run.
std::vector<Replica> Loop(const plain::Rule& rule, const std::vector<int>& group_of) {
  std::vector<Replica> replicas(2, {StartOfKnownOrder(rule)});
  struct Worker {
    std::vector<float> weights;
    int64_t steps = 0;
    double ends = kEnded;
  };
  std::vector<Worker> workers(kSlowdown.size());
  int64_t started = 0;
  const auto start = [&](size_t w, double now) {
    if (started >= kLastSamples) return;
    started += SamplesOf(static_cast<int>(w));
    workers[w].weights = replicas[group_of[w]].model.weights;
    workers[w].ends = now + kSlowdown[w];
  };
  for (size_t w = 0; w < workers.size(); ++w) {
    ++replicas[group_of[w]].members;
    start(w, 0);
  }
  while (true) {
    const auto next =
        std::min_element(workers.begin(), workers.end(),
                         [](const Worker& a, const Worker& b) { return a.ends < b.ends; });
    if (next->ends == kEnded) break;
    const auto w = static_cast<size_t>(next - workers.begin());
    const std::vector<float> gradient =
        plain::GradientOf(static_cast<int>(w), next->steps++, next->weights.data(), kSize);
    Replica& own = replicas[group_of[w]];
    own.model.Update(gradient, 0, 1.0f / static_cast<float>(kSlowdown.size()));
    for (size_t i = 0; i < kSize; ++i) own.acc[i] += gradient[i];
    if (++own.gradients == own.members) Synchronise(own, replicas[1 - group_of[w]]);
    const double now = std::exchange(next->ends, kEnded);
    start(w, now);
  }
  const bool both = replicas[0].gradients > 0 && replicas[1].gradients > 0;
  EXPECT_FALSE(both) << "the order of the last two would matter";
  Synchronise(replicas[0], replicas[1]);
  Synchronise(replicas[1], replicas[0]);
  return replicas;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  return largest;
}

// Workers 0 and 1 are group 0, whose server sends a sum after every two gradients.
TEST(GsspReplicas, GradientsPassThroughTheMomentumOfEachByThemselvesOrAsSums) {
  for (const double momentum : {0.0, 0.9}) {
    SCOPED_TRACE(momentum);
    const plain::Rule rule{.momentum = momentum, .weight_decay = 0.01};
    const std::vector<Replica> replicas = Loop(rule, {0, 0, 1});
    std::vector<float> mean(kSize);
    for (size_t i = 0; i < kSize; ++i) {
      mean[i] = (2 * replicas[0].model.weights[i] + replicas[1].model.weights[i]) / 3;
    }
    Scenario scenario("gssp", 3,
                      "servers: 2, grouping: static, group_of: [0, 0, 1], staleness: 1000, "
                      "scale: gradient");
    const SimulationResult result = RunInKnownOrder(scenario, rule);
    EXPECT_LT(LargestDifference(result.weights, mean), 1e-6);
    // The replicas differ at the end, though each has had every gradient.
    const double apart = LargestDifference(replicas[0].model.weights, replicas[1].model.weights);
    EXPECT_GT(apart, momentum == 0 ? 0 : 1e-3);
    // If the rate took the factor instead, weight decay would count for a third.
    Scenario share("gssp", 3, "servers: 2, grouping: static, group_of: [0, 0, 1], staleness: 1000");
    EXPECT_GT(LargestDifference(RunInKnownOrder(share, rule).weights, mean), 1e-3);
  }
}

}  // namespace
}  // namespace dtrain
