// Tests local_sgd against a plain loop with weights for each worker: the weights of every step, the model at a boundary
// in the middle of a period, and what the workers know of each other's steps.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <tuple>

#include "tests/exchange/loop_fixture.h"

namespace dtrain::loop {
namespace {

// The state of all workers before a step, and what each knows of the step before.
struct Moment {
  std::vector<plain::Model> models;  // by worker
  std::vector<double> shares;        // of the model at a boundary
};

using Moments = std::vector<Moment>;

Moments PlainMoments(const Scheme& scheme, int workers, int64_t period) {
  plain::Model model(scheme.rule, kLayout, plain::InitialWeights(kSize));
  model.epochs = scheme.epochs;
  model.epoch_samples = scheme.batches.epoch_samples;
  model.workers = workers;
  std::vector<plain::Model> models(workers, model);
  std::vector<double> alone(workers, 0.0), sums(workers, 0.0);
  alone[0] = 1;
  Moments moments = {{models, alone}};
  for (int64_t step = 0; step < scheme.last_step; ++step) {
    const int64_t samples = scheme.batches.OfStep(step);
    const int64_t all = scheme.AllTerms(step, workers);
    for (int w = 0; w < workers; ++w) {
      const int64_t own = scheme.TermsOf(w, plain::PartOf(samples, workers, w));
      plain::Model& mine = models[w];
      if (own == 0) {
        mine.samples += samples;
        continue;
      }
      const std::vector<float> gradient =
          plain::GradientOf(w, step, mine.weights.data(), kSize, own, own);
      mine.Update(gradient, samples, plain::Shortening(scheme.rule, plain::Norm(gradient)));
      sums[w] += static_cast<double>(own) / static_cast<double>(all);
    }
    std::vector<double> shares(workers);
    const int64_t local = step % period + 1;
    for (int w = 0; w < workers; ++w) shares[w] = sums[w] / static_cast<double>(local);
    if (local == period) {
      std::vector<float> mean(kSize);
      for (size_t i = 0; i < kSize; ++i) {
        double value = 0;
        for (int w = 0; w < workers; ++w) value += shares[w] * models[w].weights[i];
        mean[i] = static_cast<float>(value);
      }
      for (plain::Model& mine : models) mine.weights = mean;
      sums.assign(workers, 0.0);
      shares = alone;
    }
    moments.push_back({models, shares});
  }
  return moments;
}

void ExpectNear(const float* values, const std::vector<float>& expected, const std::string& what) {
  double squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += std::pow(double{values[i]} - expected[i], 2);
  }
  EXPECT_LT(std::sqrt(squares), 1e-5 * plain::Norm(expected)) << what;
}

struct Periods {
  int workers;
  int64_t period;
  bool sentences;
};
void PrintTo(const Periods& one, std::ostream* out) {
  *out << fmt::format("{} workers, period {}{}", one.workers, one.period,
                      one.sentences ? ", sentences" : "");
}

class LocalSgdTest : public ::testing::TestWithParam<std::tuple<Periods, plain::Rule>> {
 protected:
  static void Follow(int64_t boundary_every) {
    const auto& [one, rule] = GetParam();
    const auto strategy = MakeStrategy("local_sgd", fmt::format("period: {}", one.period));
    const Scheme scheme{.rule = rule, .boundary_every = boundary_every, .sentences = one.sentences};
    const Moments moments = PlainMoments(scheme, one.workers, one.period);
    LocalWorld::Run(one.workers, [&, &one = one](Transport& transport) {
      FollowRank(scheme, *strategy, moments, one.period, transport);
    });
  }

  static void FollowRank(const Scheme& scheme, const Strategy& strategy, const Moments& moments,
                         int64_t period, Transport& transport) {
    const Rank rank = transport.rank();
    const int workers = transport.size();
    const LoopRank inputs(scheme, strategy, strategy.Place(workers), moments[0].models[0]);
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    int64_t step = 0;
    for (int64_t boundary = scheme.NextBoundary(0);; boundary = scheme.NextBoundary(boundary)) {
      for (; step < boundary; ++step) {
        Step(scheme, *exchange, moments[step], step, period, rank, workers, step + 1 == boundary);
      }
      if (!exchange->Begin(1).boundary) Fail(fmt::format("no boundary before step {}", step));
      Boundary(*exchange, rank, moments[boundary]);
      if (boundary == scheme.last_step) return;
      exchange->Leave();
    }
  }

  static void Step(const Scheme& scheme, Exchange& exchange, const Moment& moment, int64_t step,
                   int64_t period, Rank rank, int workers, bool boundary) {
    const int64_t all = scheme.batches.OfStep(step), own = plain::PartOf(all, workers, rank);
    const int64_t terms = scheme.TermsOf(rank, own), all_terms = scheme.AllTerms(step, workers);
    Turn turn = exchange.Begin(own);
    if (turn.boundary) Fail(fmt::format("rank {} pauses before step {}", rank, step));
    ExpectNear(FloatsOf(turn.weights.arena(), kSize).data(), moment.models[rank].weights,
               fmt::format("worker {}, step {}", rank, step));
    StepReport report{.samples = own, .loss_sum = 2.0 * own * (rank + 1), .global_samples = all};
    if (scheme.sentences) {
      report.terms = terms;
      report.global_terms = all_terms;
    }
    Compute(exchange, std::move(turn), rank, step, terms, all_terms);
    const StepOutcome outcome = exchange.End(report);
    EXPECT_EQ(outcome.samples, all);
    EXPECT_EQ(outcome.alone, (step + 1) % period != 0 && !boundary);
    double sum = own == 0 ? 0 : report.loss_sum / report.share();
    if (!outcome.alone) {
      sum = 0;
      for (int w = 0; w < workers; ++w) {
        sum += 2.0 * (w + 1) * static_cast<double>(plain::PartOf(all, workers, w));
      }
    }
    EXPECT_NEAR(outcome.loss_sum, sum, 1e-9) << "worker " << rank << ", step " << step;
  }

  static void Boundary(Exchange& exchange, Rank rank, const Moment& moment) {
    exchange.Collect(true);
    std::vector<float> mean(kSize), first(kSize);
    for (size_t w = 0; w < moment.models.size(); ++w) {
      for (size_t i = 0; i < kSize; ++i) {
        mean[i] += static_cast<float>(moment.shares[w]) * moment.models[w].weights[i];
        first[i] += static_cast<float>(moment.shares[w]) * moment.models[w].first[i];
      }
    }
    ExpectNear(exchange.HostWeights(), mean, "the model");
    if (rank != 0) return;
    ExpectNear(exchange.solver_state()[0], first, "the solver's first vector");
    EXPECT_EQ(exchange.spread() > 0, moment.shares[0] < 1);
  }
};

TEST_P(LocalSgdTest, EveryWorkerHasTheWeightsOfThePlainLoop) { Follow(4); }

INSTANTIATE_TEST_SUITE_P(
    All, LocalSgdTest,
    ::testing::Combine(::testing::Values(Periods{1, 3, false}, Periods{2, 1, false},
                                         Periods{3, 1, false}, Periods{3, 2, true},
                                         Periods{3, 3, false}, Periods{2, 100, false}),
                       ::testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(5))));

// One worker is asked to stop in the middle of a period.  All of them stop at its end.
TEST(LocalSgd, AStopReachesAllWorkersWithTheNextMean) {
  const auto strategy = MakeStrategy("local_sgd", "period: 3");
  const Scheme scheme{.rule = plain::Steps(), .boundary_every = 100};
  const plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  LocalWorld::Run(3, [&](Transport& transport) {
    const LoopRank inputs(scheme, *strategy, strategy->Place(3), start);
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    int64_t step = 0;
    for (;; ++step) {
      Turn turn = exchange->Begin(1);
      if (turn.boundary) {
        EXPECT_TRUE(turn.state.stop);
        break;
      }
      Compute(*exchange, std::move(turn), transport.rank(), step, 1, 3);
      const bool stop = transport.rank() == 1 && step >= 1;
      exchange->End({.samples = 1, .loss_sum = 1, .stop = stop, .global_samples = 3});
    }
    EXPECT_EQ(step, 3) << "rank " << transport.rank();
  });
}

// The run ends in the middle of a period, after a worker's weights have become infinite.
TEST(LocalSgd, ANotFiniteWeightIsKnownAtTheEndOfTheRun) {
  const auto strategy = MakeStrategy("local_sgd", "period: 100");
  const Scheme scheme{.rule = plain::Steps(), .last_step = 3, .boundary_every = 100};
  const plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  for (const bool of_loss : {false, true}) {  // true: only the loss of a step was infinite
    LocalWorld::Run(2, [&](Transport& transport) {
      const LoopRank inputs(scheme, *strategy, strategy->Place(2), start);
      const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
      for (int64_t step = 0; step < 3; ++step) {
        Turn turn = exchange->Begin(1);
        if (turn.boundary) Fail("it pauses too early");
        Compute(*exchange, std::move(turn), transport.rank(), step, 1, 2);
        const bool bad = transport.rank() == 1 && step == 0;
        const float infinite = INFINITY;
        if (bad && !of_loss) CopyIn(exchange->gradients().From(17), &infinite, 1);
        const int64_t all = scheme.batches.OfStep(step);
        exchange->End({.samples = plain::PartOf(all, 2, transport.rank()),
                       .loss_sum = bad && of_loss ? INFINITY : 1,
                       .global_samples = all});
      }
      const Turn turn = exchange->Begin(1);
      ASSERT_TRUE(turn.boundary);
      EXPECT_FALSE(turn.state.finite)
          << "rank " << transport.rank() << ", of the loss: " << of_loss;
    });
  }
}

// The worker whose weights became infinite tells the others with the next mean.
TEST(LocalSgd, ANotFiniteWeightEndsTheRunForAll) {
  const auto strategy = MakeStrategy("local_sgd", "period: 2");
  const Scheme scheme{.rule = plain::Steps(), .boundary_every = 100};
  plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  LocalWorld::Run(2, [&](Transport& transport) {
    const LoopRank inputs(scheme, *strategy, strategy->Place(2), start);
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    int64_t step = 0;
    for (;; ++step) {
      Turn turn = exchange->Begin(1);
      if (turn.boundary) {
        EXPECT_FALSE(turn.state.finite);
        break;
      }
      Compute(*exchange, std::move(turn), transport.rank(), step, 1, 2);
      if (transport.rank() == 1 && step == 0) {
        const float bad = INFINITY;
        CopyIn(exchange->gradients().From(17), &bad, 1);
      }
      exchange->End({.samples = 1, .loss_sum = 1, .global_samples = 2});
    }
    EXPECT_EQ(step, 2) << "rank " << transport.rank();
  });
}

// The solver leaves frozen parameters as they are, and so does a mean of equal numbers whose shares are rounded.
TEST(LocalSgd, FrozenParametersStay) {
  ArenaLayout layout = kLayout;
  layout.entries[1].lr_factor = layout.entries[4].lr_factor = 0;
  const auto strategy = MakeStrategy("local_sgd", "period: 2");
  const Scheme scheme{.rule = plain::Steps(), .last_step = 6, .boundary_every = 3};
  const plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  LocalWorld::Run(3, [&](Transport& transport) {
    LoopRank inputs(scheme, *strategy, strategy->Place(3), start);
    inputs.spec.layout = &layout;
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    int64_t step = 0, boundaries = 0;
    while (boundaries < 2) {
      Turn turn = exchange->Begin(1);
      if (turn.boundary) {
        ++boundaries;
        exchange->Collect(false);
        for (const Range& frozen : {Range{300, 301}, Range{600, kSize}}) {
          for (int64_t i = frozen.begin; i < frozen.end; ++i) {
            ASSERT_EQ(exchange->HostWeights()[i], start.weights[i]) << i;
          }
        }
        EXPECT_NE(exchange->HostWeights()[0], start.weights[0]);
        if (boundaries < 2) exchange->Leave();
        continue;
      }
      const int64_t all = scheme.batches.OfStep(step);
      const int64_t own = plain::PartOf(all, 3, transport.rank());
      Compute(*exchange, std::move(turn), transport.rank(), step, own, all);
      exchange->End({.samples = own, .loss_sum = 1, .global_samples = all});
      ++step;
    }
  });
}

}  // namespace
}  // namespace dtrain::loop
