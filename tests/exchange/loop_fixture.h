// Fixture: runs of a small model whose gradients depend on every bit of the weights, and the plain loop that says what
// the weights must be after every step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/support/plain_inputs.h"
#include "tests/support/plain_loop.h"
#include "tests/support/strategy_text.h"

namespace dtrain::loop {

inline constexpr int64_t kSize = 1001;  // the shards of 2 and 3 servers cut through parameters
inline const LayerGradients kPieces{{{0, 300}, {300, 301}, {301, 600}, {600, 1001}}};
inline const ArenaLayout kLayout{{{"fc.weight", {300}, {0, 300}, true},
                                  {"fc.bias", {1}, {300, 301}, false},
                                  {"conv.weight", {249}, {301, 550}, true},
                                  {"conv.bias", {50}, {550, 600}, false},
                                  {"embedding.weight", {401}, {600, kSize}, true}}};

// A run of 7 steps with three steps an epoch: 20 samples, 20, and a last batch with too few samples for three workers.
// It has a boundary after step 4 and one at its end, both in the middle of an epoch.
struct Scheme {
  plain::Rule rule;
  plain::Batches batches{41, 20};
  double epochs = 3;
  int64_t last_step = 7;
  int64_t boundary_every = 4;
  bool sentences = false;  // the loss of a sample has more than one term, and their number differs
  Device device = {};      // where a single rank has its vectors

  int64_t TermsOf(int worker, int64_t samples) const {
    return sentences ? (3 * worker + 2) * samples : samples;
  }
  // Returns the number of terms of the loss in a step's batch.
  int64_t AllTerms(int64_t step, int workers) const {
    int64_t terms = 0;
    for (int w = 0; w < workers; ++w) {
      terms += TermsOf(w, plain::PartOf(batches.OfStep(step), workers, w));
    }
    return terms;
  }

  int64_t NextBoundary(int64_t step) const {
    return std::min((step / boundary_every + 1) * boundary_every, last_step);
  }
};

// The plain loop's model after each number of steps.  The gradient of a step is computed from the weights after `seen`
// steps.
using Trace = std::vector<plain::Model>;
using Seen = std::function<int64_t(int64_t step)>;

inline Trace TraceOf(const Scheme& scheme, int workers, bool at_server, const Seen& seen) {
  plain::Model model(scheme.rule, kLayout, plain::InitialWeights(kSize));
  model.epochs = scheme.epochs;
  model.epoch_samples = scheme.batches.epoch_samples;
  model.workers = workers;
  Trace trace = {model};
  for (int64_t step = 0; step < scheme.last_step; ++step) {
    const int64_t samples = scheme.batches.OfStep(step);
    const int64_t all = scheme.AllTerms(step, workers);
    std::vector<std::vector<float>> gradients;
    for (int w = 0; w < workers; ++w) {
      const int64_t own = scheme.TermsOf(w, plain::PartOf(samples, workers, w));
      const float* const weights = trace[seen(step)].weights.data();
      gradients.push_back(plain::GradientOf(w, step, weights, kSize, own, all));
      if (at_server) plain::ShortenAtWorker(scheme.rule, own, all, gradients.back());
    }
    if (at_server) {
      for (size_t w = 1; w < gradients.size(); ++w) {
        for (size_t i = 0; i < kSize; ++i) gradients[0][i] += gradients[w][i];
      }
      model.Update(gradients[0], samples);
    } else {
      model.UpdateTogether(gradients, samples);
    }
    trace.push_back(model);
  }
  return trace;
}

// One rank of such a run, which starts from the plain loop's model after `from` steps.
struct LoopRank {
  LoopRank(const Scheme& scheme, const Strategy& strategy, const Placement& placement,
           const plain::Model& from)
      : weights(from.weights), device(scheme.device) {
    if (from.updates > 0) {
      const char* const names[] = {"exp_avg", "momentum"};
      solver[names[scheme.rule.adaptive() ? 0 : 1]] = from.first;
      if (scheme.rule.adaptive()) solver["exp_avg_sq"] = from.second;
    }
    spec.layout = &kLayout;
    spec.strategy = &strategy;
    spec.layer_gradients = kPieces;
    spec.actors = {placement, kSize, strategy.Buckets(kPieces), scheme.rule.clip_norm > 0};
    spec.solver = MakeSolver(plain::Text(scheme.rule));
    spec.epochs = scheme.epochs;
    spec.rule = {.epoch_samples = scheme.batches.epoch_samples,
                 .batch = scheme.batches.batch,
                 .checkpoint_every_steps = scheme.boundary_every,
                 .last_samples = scheme.batches.Before(scheme.last_step)};
    spec.start = {.samples_applied = from.samples,
                  .updates = from.updates,
                  .weights = weights,
                  .solver = &solver};
  }

  std::unique_ptr<Exchange> Make(Transport& transport) const {
    if (transport.size() == 1) return std::make_unique<InlineExchange>(spec, transport, 1, device);
    return std::make_unique<ThreadedExchange>(transport, spec, 0);
  }

  std::vector<float> weights;
  Device device;
  std::map<std::string, std::vector<float>> solver;
  ExchangeSpec spec;
};

// Returns text such as "weights[17] is 0.5 instead of 0.25", or "" if all bits are equal.
inline std::string Difference(const char* name, const float* values,
                              const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (values[i] == expected[i]) continue;
    return fmt::format("{}[{}] is {} instead of {}", name, i, values[i], expected[i]);
  }
  return "";
}

// Ends this rank with an exception, so that the other ranks do not wait for it.
[[noreturn]] inline void Fail(const std::string& what) { throw std::runtime_error(what); }

// Checks the model of the exchange at a boundary against the plain loop's.
inline void ExpectAtBoundary(Exchange& exchange, Rank rank, const plain::Model& expected) {
  exchange.Collect(true);
  EXPECT_EQ(Difference("weights", exchange.HostWeights(), expected.weights), "");
  if (rank != 0) return;
  EXPECT_EQ(exchange.updates(), expected.updates);
  const auto state = exchange.solver_state();
  ASSERT_EQ(state.size(), expected.rule.adaptive() ? 2u : 1u);
  EXPECT_EQ(Difference("first", state[0], expected.first), "");
  if (expected.rule.adaptive()) {
    EXPECT_EQ(Difference("second", state[1], expected.second), "");
  }
}

// Runs Begin and the backward pass of one step, with the gradient at these weights.
inline void Compute(Exchange& exchange, Turn turn, int worker, int64_t step, int64_t own,
                    int64_t all) {
  const std::vector<float> gradient = plain::GradientOf(
      worker, step, FloatsOf(turn.weights.arena(), kSize).data(), kSize, own, all);
  const Arena to = exchange.gradients();
  turn.weights = Blob();
  for (const Range& slice : kPieces.ranges) {
    CopyIn(to.From(slice.begin), gradient.data() + slice.begin, slice.size());
    exchange.Ready(slice);
  }
}

// Runs one rank from step `from` to the end.  Every step must start with the plain loop's weights, and every boundary
// must be where the schedule has it.
inline void FollowTrace(const Scheme& scheme, const Strategy& strategy, const Trace& trace,
                        const Seen& seen, int64_t from, Transport& transport) {
  const Placement placement = strategy.Place(trace[0].workers);
  const Rank rank = transport.rank();
  const LoopRank inputs(scheme, strategy, placement, trace[from]);
  const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
  int64_t step = from;
  for (int64_t boundary = scheme.NextBoundary(from);; boundary = scheme.NextBoundary(boundary)) {
    for (; placement.IsWorker(rank) && step < boundary; ++step) {
      const int64_t all = scheme.batches.OfStep(step);
      const int64_t own = plain::PartOf(all, placement.workers, rank);
      Turn turn = exchange->Begin(own);
      if (turn.boundary) Fail(fmt::format("rank {} pauses before step {}", rank, step));
      EXPECT_EQ(Difference("weights", FloatsOf(turn.weights.arena(), kSize).data(),
                           trace[seen(step)].weights),
                "")
          << "step " << step;
      StepReport report{
          .samples = own, .loss_sum = static_cast<double>(own), .global_samples = all};
      const int64_t terms = scheme.TermsOf(rank, own);
      const int64_t all_terms = scheme.AllTerms(step, placement.workers);
      if (scheme.sentences) {
        report.terms = terms;
        report.global_terms = all_terms;
      }
      Compute(*exchange, std::move(turn), rank, step, terms, all_terms);
      const StepOutcome outcome = exchange->End(report);
      EXPECT_EQ(outcome.samples, strategy.traits().lockstep ? all : own);
      EXPECT_EQ(outcome.loss_sum, static_cast<double>(outcome.samples));
    }
    const int64_t next = scheme.batches.OfStep(step);
    const Turn turn = exchange->Begin(plain::PartOf(next, placement.workers, rank));
    if (!turn.boundary) Fail(fmt::format("rank {} does not pause before step {}", rank, step));
    EXPECT_EQ(turn.state.samples_applied, trace[boundary].samples);
    EXPECT_TRUE(turn.state.finite);
    ExpectAtBoundary(*exchange, rank, trace[boundary]);
    if (boundary == scheme.last_step) return;
    exchange->Leave();
  }
}

}  // namespace dtrain::loop
