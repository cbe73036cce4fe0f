// Tests every strategy against a plain sequential loop, to the bit: the weights of each step, the boundaries and the
// solver's state, from the beginning and after a resume in the middle of an epoch and of the warm-up.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/exchange/loop_fixture.h"
#include "tests/support/lazy_queue.h"

namespace dtrain::loop {
namespace {

plain::Rule ClippedAdamW() {
  return {.name = "adamw",
          .lr = 0.02,
          .beta1 = 0.8,
          .beta2 = 0.99,
          .epsilon = 1e-4,
          .weight_decay = 0.1,
          .clip_norm = 5,
          .schedule = "step",
          .every = 1.1,
          .lr_scaling = "sqrt"};
}

struct Way {
  const char* strategy;
  int workers;
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << fmt::format("{}, {} workers", way.strategy, way.workers);
}

using Case = std::tuple<Way, plain::Rule>;

class SequentialLoopTest : public ::testing::TestWithParam<Case> {
 protected:
  // Runs all ranks from the plain loop's model after `from` steps.
  static void Follow(int64_t from, bool prefetch = false) {
    const auto& [way, rule] = GetParam();
    const auto strategy = MakeStrategy(way.strategy);
    const Scheme scheme{rule};
    const bool at_server = strategy->Place(way.workers).servers > 0;
    // Prefetched weights lack the step that was computed while they were in flight.
    const Seen seen = [&](int64_t step) {
      return prefetch ? std::max(step - 1, std::min(step, from)) : step;
    };
    const Trace trace = TraceOf(scheme, way.workers, at_server, seen);
    const Placement placement = strategy->Place(way.workers);
    LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
      FollowTrace(scheme, *strategy, trace, seen, from, transport);
    });
  }
};

TEST_P(SequentialLoopTest, EveryStepHasItsWeights) { Follow(0); }

TEST_P(SequentialLoopTest, AResumedRunHasThemToo) {
  Follow(2);  // in the warm-up, before the last batch of an epoch
  Follow(5);
}

INSTANTIATE_TEST_SUITE_P(
    Synchronous, SequentialLoopTest,
    ::testing::Combine(
        ::testing::Values(Way{"{name: allreduce}", 1}, Way{"{name: allreduce, fusion_bytes: 0}", 2},
                          Way{"{name: allreduce, fusion_bytes: 1300}", 3},
                          Way{"{name: ps_bsp, servers: 1}", 3},
                          Way{"{name: ps_bsp, servers: 3}", 2},
                          Way{"{name: ps_bsp, servers: 3, placement: colocated}", 2},
                          Way{"{name: ps_bsp, servers: 1, placement: colocated}", 3},
                          Way{"{name: ps_bsp, placement: colocated}", 1}),
        ::testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(), ClippedAdamW())));

// With one worker the order of updates is fixed.
INSTANTIATE_TEST_SUITE_P(
    Asynchronous, SequentialLoopTest,
    ::testing::Combine(
        ::testing::Values(
            Way{"{name: ps_asp, servers: 1}", 1}, Way{"{name: ps_asp, servers: 3}", 1},
            Way{"{name: ps_ssp, servers: 2, staleness: 0}", 1},
            Way{"{name: ps_ssp, placement: colocated}", 1}, Way{"{name: ps_dssp}", 1},
            Way{"{name: gssp, servers: 1}", 1}, Way{"{name: gssp, placement: colocated}", 1},
            Way{"{name: gssp, inside: bsp}", 1}, Way{"{name: inhad, lockstep: true}", 1},
            Way{"{name: inhad, lockstep: true, servers: 3}", 1},
            Way{"{name: inhad, lockstep: true, placement: colocated}", 1}),
        ::testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(), ClippedAdamW())));

class PrefetchedLoopTest : public SequentialLoopTest {};

TEST_P(PrefetchedLoopTest, EveryStepHasTheWeightsOfOneStepBefore) {
  Follow(0, true);
  Follow(2, true);
}

INSTANTIATE_TEST_SUITE_P(
    Asynchronous, PrefetchedLoopTest,
    ::testing::Combine(::testing::Values(Way{"{name: ps_asp, prefetch: true}", 1},
                                         Way{"{name: ps_asp, servers: 3, prefetch: true}", 1}),
                       ::testing::Values(plain::ClippedCosine(), plain::Adam())));

// Weights, gradients and the solver's state are in device memory.
TEST(SequentialLoop, OnADeviceAllIsAsInTheMachinesMemory) {
  const auto strategy = MakeStrategy("{name: allreduce, fusion_bytes: 1300}");
  const Seen seen = [](int64_t step) { return step; };
  for (const plain::Rule& rule : {plain::Steps(), plain::ClippedCosine(), ClippedAdamW()}) {
    Scheme scheme{rule};
    scheme.device.queue = std::make_shared<LazyQueue>();
    const Trace trace = TraceOf(scheme, 1, false, seen);
    const auto transport = LocalWorld(1).Connect(0);
    for (const int64_t from : {0, 2, 5}) {
      FollowTrace(scheme, *strategy, trace, seen, from, *transport);
    }
  }
}

// The clipping cases above need both: a step that is clipped and one that is not.
TEST(SequentialLoop, SomeStepsAreClippedAndOthersAreNot) {
  for (const bool at_server : {false, true}) {
    const Trace trace =
        TraceOf({plain::ClippedCosine()}, 3, at_server, [](int64_t step) { return step; });
    for (const int64_t step : {0, 1}) {
      std::vector<float> sum(kSize);
      for (int w = 0; w < 3; ++w) {
        const int64_t own = plain::PartOf(20, 3, w);
        std::vector<float> part =
            plain::GradientOf(w, step, trace[step].weights.data(), kSize, own, 20);
        EXPECT_EQ(plain::Norm(part) * 20 / static_cast<double>(own) > 5, step == 0);
        for (size_t i = 0; i < kSize; ++i) sum[i] += part[i];
      }
      EXPECT_EQ(plain::Norm(sum) > 5, step == 0);
    }
  }
}

// Where samples have several loss terms, a worker's mean is over these terms.
TEST(SequentialLoop, SentencesAreClippedByTheirWords) {
  const auto strategy = MakeStrategy("{name: ps_bsp, servers: 2}");
  Scheme scheme{plain::ClippedCosine()};
  scheme.sentences = true;
  const Seen seen = [](int64_t step) { return step; };
  const Trace trace = TraceOf(scheme, 3, true, seen);
  LocalWorld::Run(
      5, [&](Transport& transport) { FollowTrace(scheme, *strategy, trace, seen, 0, transport); });
}

class StopTest : public ::testing::TestWithParam<const char*> {};

// All workers stop after the same step, whichever of them asks for it.
TEST_P(StopTest, AnyWorkersWishEndsTheSameStepOfAll) {
  const auto strategy = MakeStrategy(GetParam());
  const Scheme scheme{plain::Steps()};
  const Placement placement = strategy->Place(3);
  const plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  for (int asks = 0; asks < 3; ++asks) {
    LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
      const Rank rank = transport.rank();
      const LoopRank inputs(scheme, *strategy, placement, start);
      const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
      for (int64_t step = 0; placement.IsWorker(rank) && step < 2; ++step) {
        const int64_t own = plain::PartOf(20, 3, rank);
        Turn turn = exchange->Begin(own);
        if (turn.boundary)
          Fail(fmt::format("worker {} asks: rank {} pauses too early", asks, rank));
        Compute(*exchange, std::move(turn), rank, step, own, 20);
        const bool asked = step == 1 && rank == asks;
        EXPECT_EQ(exchange->End({.samples = own, .stop = asked, .global_samples = 20}).stop,
                  step == 1)
            << "worker " << asks << " asks; step " << step << " of " << rank;
      }
      const Turn turn = exchange->Begin(1);
      if (!turn.boundary) Fail(fmt::format("worker {} asks: rank {} goes on", asks, rank));
      EXPECT_TRUE(turn.state.stop);
      EXPECT_EQ(turn.state.samples_applied, 40);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Synchronous, StopTest,
                         ::testing::Values("{name: allreduce}", "{name: ps_bsp, servers: 2}",
                                           "{name: ps_bsp, servers: 2, placement: colocated}"));

}  // namespace
}  // namespace dtrain::loop
