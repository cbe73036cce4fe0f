// Tests real threads that stop at a boundary and resume from the state that each rank saved: every gradient is once in
// the weights or in a residual, whatever was in flight.  Gradients are whole numbers, so that a sum is exact in any
// order.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

constexpr int kWorkers = 4;
// Size of the model whose gradients are whole numbers.
constexpr int64_t kWholeSize = 300;
const ArenaLayout kWholeLayout{
    {{"fc.weight", {100}, {0, 100}, true}, {"conv.weight", {200}, {100, 300}}}};
const LayerGradients kWholeParts{{{0, 100}, {100, 300}}};

float WholeGradient(int worker, int64_t step, int64_t i) {
  return static_cast<float>((worker * 7 + step * 3 + i * i) % 9 - 4);
}

struct ResumeCase {
  std::string name, strategy, compress;
};

void PrintTo(const ResumeCase& one, std::ostream* out) { *out << one.name; }

// The saved state of all ranks at a boundary.
struct Left {
  int64_t samples = 0, updates = 0;
  std::vector<float> weights;
  std::map<Rank, StateRecord> ranks;
  std::map<Rank, int64_t> steps;  // of each worker
  ProtocolReport report;          // of all parts of the run so far
};

class ExchangeResumeTest : public ::testing::TestWithParam<ResumeCase> {
 protected:
  // Runs one rank to the first boundary after `from`, or to the end.  There is a boundary every four global steps.
  void RunRank(Transport& transport, const Left& from, bool to_the_end, Left& left) {
    const Rank rank = transport.rank();
    const auto strategy = MakeStrategy(GetParam().strategy);
    ExchangeSpec spec;
    spec.layout = &kWholeLayout;
    spec.strategy = strategy.get();
    spec.layer_gradients = kWholeParts;
    spec.actors = {strategy->Place(kWorkers), kWholeSize, strategy->Buckets(kWholeParts)};
    spec.actors.compress = MakeCompress(GetParam().compress);
    // With four workers a gradient is applied with a quarter of this rate.
    spec.solver = MakeSolver("{name: sgd, lr: 4, momentum: 0, weight_decay: 0}");
    spec.rule = {
        .epoch_samples = 4000, .batch = 40, .checkpoint_every_steps = 4, .last_samples = 40 * 30};
    spec.start = {.samples_applied = from.samples,
                  .updates = from.updates,
                  .weights = from.weights,
                  .ranks = &from.ranks};
    ThreadedExchange exchange(transport, spec, 60);
    int64_t step = from.steps.contains(rank) ? from.steps.at(rank) : 0;
    BoundaryState boundary = StepToBoundary(exchange, rank, step);
    while (to_the_end && boundary.samples_applied < spec.rule.last_samples) {
      exchange.Leave();
      boundary = StepToBoundary(exchange, rank, step);
    }
    exchange.Collect(true);
    Exchange::Own own = exchange.SaveOwn();
    const std::lock_guard lock(mutex_);
    left.samples = boundary.samples_applied;
    left.ranks[rank] = std::move(own.state);
    left.report.Add(exchange.stats().protocol);
    if (spec.placement().IsWorker(rank)) left.steps[rank] = step;
    if (rank != 0) return;
    left.updates = exchange.updates();
    left.weights = {exchange.weights().f32(), exchange.weights().f32() + kWholeSize};
  }

  static BoundaryState StepToBoundary(Exchange& exchange, Rank rank, int64_t& step) {
    for (;; ++step) {
      Turn turn = exchange.Begin(10);
      if (turn.boundary) return turn.state;
      turn.weights = Blob();
      for (int64_t i = 0; i < kWholeSize; ++i)
        exchange.gradients().data[i] = WholeGradient(rank, step, i);
      // A step takes longer than the message about a boundary.
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      for (const Range& slice : kWholeParts.ranges) exchange.Ready(slice);
      exchange.End({.samples = 10, .loss_sum = 1});
    }
  }

  Left Run(const Left& from, bool to_the_end) {
    Left left{.report = from.report};  // each part of the run counts from its own beginning
    LocalWorld::Run(MakeStrategy(GetParam().strategy)->Place(kWorkers).ranks(),
                    [&](Transport& transport) { RunRank(transport, from, to_the_end, left); });
    return left;
  }

  std::mutex mutex_;
};

TEST_P(ExchangeResumeTest, NoGradientIsLostOrAppliedTwice) {
  Left left;
  left.weights.assign(kWholeSize, 1000);
  int interrupted = 0;
  while (left.samples < 40 * 24) {  // each pass stands for another process
    left = Run(left, false);
    ++interrupted;
  }
  left = Run(left, true);
  EXPECT_GE(interrupted, 1);
  int64_t steps = 0, counted = left.report.Total("dropped");
  for (const auto& [worker, own] : left.steps) steps += own;
  for (const int64_t count : left.report.staleness) counted += count;
  EXPECT_EQ(left.samples, 10 * steps);
  EXPECT_EQ(counted, steps);
  if (GetParam().name == "inhad") return;  // means of gradients: they do not add up
  for (int64_t i = 0; i < kWholeSize; ++i) {
    float expected = 1000;
    for (const auto& [worker, own] : left.steps) {
      for (int64_t step = 0; step < own; ++step) expected -= WholeGradient(worker, step, i);
      const StateField* const kept =
          left.ranks[worker].Find("worker " + std::to_string(worker), "residual");
      if (kept != nullptr) expected += kept->floats.at(i);
    }
    ASSERT_EQ(left.weights[i], expected) << "element " << i;
  }
}

// A second resume at the end flushes nothing: there is no update, not even an empty one.
TEST_P(ExchangeResumeTest, ARunThatIsResumedAtItsEndStaysAsItIs) {
  Left left;
  left.weights.assign(kWholeSize, 1000);
  const Left end = Run(left, true), again = Run(end, true);
  EXPECT_EQ(again.samples, end.samples);
  EXPECT_EQ(again.updates, end.updates);
  EXPECT_EQ(again.weights, end.weights);
  EXPECT_EQ(again.steps, end.steps);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExchangeResumeTest,
    ::testing::Values(
        ResumeCase{"ps_asp", "{name: ps_asp, servers: 2}", ""},
        ResumeCase{"ps_asp_topk", "{name: ps_asp, placement: colocated}",
                   "{name: topk, density: 0.05}"},
        ResumeCase{"ps_ssp", "{name: ps_ssp, servers: 2}", ""},
        ResumeCase{"ps_ssp_topk", "{name: ps_ssp, servers: 2}", "{name: topk, density: 0.2}"},
        ResumeCase{"gssp", "{name: gssp, servers: 2, grouping: static, exchange_every: 2}", ""},
        ResumeCase{"gssp_measured", "{name: gssp, servers: 2}", ""},
        ResumeCase{"gssp_gdtopk", "{name: gssp, servers: 2, grouping: static, exchange_every: 2}",
                   "{name: gdtopk}"},
        ResumeCase{"inhad", "{name: inhad}", ""}),
    [](const auto& info) { return info.param.name; });

// Worker 0 starts with the sum of the other workers' residuals.
TEST(ExchangeResume, WorkerZeroBeginsWithTheSumOfResiduals) {
  const auto strategy = MakeStrategy("{name: ps_asp}");
  std::vector<float> weights(kWholeSize, 1);
  KeptVectors before{std::vector<float>(kWholeSize), {}};
  for (int64_t i = 0; i < kWholeSize; ++i) before.residual[i] = static_cast<float>(i);
  LocalWorld::Run(3, [&](Transport& transport) {
    ExchangeSpec spec;
    spec.layout = &kWholeLayout;
    spec.strategy = strategy.get();
    spec.layer_gradients = kWholeParts;
    spec.actors = {strategy->Place(2), kWholeSize, strategy->Buckets(kWholeParts)};
    spec.actors.compress = MakeCompress("{name: topk, density: 0.1}");
    spec.solver = MakeSolver("{name: sgd}");
    spec.rule = {.epoch_samples = 100, .batch = 10, .last_samples = 100};
    spec.start = {.samples_applied = 100, .weights = weights, .kept = &before};
    ThreadedExchange exchange(transport, spec, 60);
    EXPECT_TRUE(exchange.Begin(5).boundary);
    const StateRecord state = exchange.SaveOwn().state;
    const std::string worker = "worker " + std::to_string(transport.rank());
    const StateField* const kept = state.Find(worker, "residual");
    EXPECT_EQ(kept != nullptr, transport.rank() == 0);
    if (kept != nullptr) {
      EXPECT_EQ(kept->floats, before.residual);
    }
  });
}

}  // namespace
}  // namespace dtrain
