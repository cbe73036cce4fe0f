// Fixture for tests of the exchange: a small model, gradients by formula, and the ranks that use them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "framework/comm/backoff.h"
#include "framework/exchange/exchange.h"
#include "framework/exchange/message_channel.h"
#include "framework/exchange/rank_parts.h"
#include "tests/support/golden_inputs.h"
#include "tests/support/plain_loop.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

constexpr int kSteps = 4;
inline const LayerGradients kPieces{{{0, 700}, {700, 701}, {701, 3000}, {3000, 300'000}}};
inline const ArenaLayout kLayout{{{"fc.weight", {700}, {0, 700}, true},
                                  {"fc.bias", {1}, {700, 701}, false},
                                  {"conv.weight", {2299}, {701, 3000}, true},
                                  {"embedding.weight", {297'000}, {3000, 300'000}, true}}};

inline plain::Rule SgdRule(double clip_norm) {
  return {.weight_decay = 0.001, .clip_norm = clip_norm};
}

// Uniform in [-1, 1), with 24 random bits, so that the order of a sum shows; golden::Unit's values would hide it.  It
// is cheap, because every rank and the plain loop compute all gradients, under ThreadSanitizer too.
inline float Gradient(int rank, int step, int64_t i) {
  const uint64_t stream = static_cast<uint64_t>(rank) << 16 | static_cast<uint64_t>(step);
  return static_cast<float>(golden::Bits(stream, static_cast<uint64_t>(i)) >> 40) * 0x1p-23f - 1;
}

inline std::vector<float> InitialWeights() {
  std::vector<float> weights(static_cast<size_t>(kLayout.size()));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Gradient(99, 0, static_cast<int64_t>(i));
  return weights;
}

// Returns the final weights of a plain loop.  With `at_server` each worker clips its gradient before the servers get
// it.  The result is cached for later tests; call it only from a test's main thread.
inline const std::vector<float>& Expected(int ranks, double clip_norm, bool at_server = false) {
  static std::map<std::tuple<int, double, bool>, std::vector<float>> known;
  std::vector<float>& weights = known[{ranks, clip_norm, at_server}];
  if (!weights.empty()) return weights;
  plain::Rule rule = SgdRule(clip_norm);
  if (at_server) rule.clip_norm = 0;
  plain::Model model(rule, kLayout, InitialWeights());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> gradients(ranks, std::vector<float>(model.weights.size()));
    for (int r = 0; r < ranks; ++r) {
      for (size_t i = 0; i < model.weights.size(); ++i) {
        gradients[r][i] = Gradient(r, step, static_cast<int64_t>(i));
      }
      if (at_server) plain::ShortenAtWorker(SgdRule(clip_norm), 10, 10, gradients[r]);
    }
    model.UpdateTogether(gradients, 10 * ranks);
  }
  return weights = model.weights;
}

constexpr int64_t kEpoch = 1'000'000'000;

// The inputs of one rank, with the objects that they refer to.
struct RankInputs {
  RankInputs(const Strategy& strategy, const Placement& placement, double clip_norm,
             int64_t boundary_after = kEpoch)
      : weights(InitialWeights()) {
    spec.layout = &kLayout;
    spec.strategy = &strategy;
    spec.layer_gradients = kPieces;
    spec.actors = {placement, kLayout.size(), strategy.Buckets(kPieces), clip_norm > 0};
    spec.solver = MakeSolver(plain::Text(SgdRule(clip_norm)));
    spec.rule = {.epoch_samples = kEpoch, .batch = 10, .last_samples = boundary_after};
    spec.start.weights = weights;
  }
  std::vector<float> weights;
  ExchangeSpec spec;
};

inline StepOutcome RunStep(Exchange& exchange, int rank, int step, bool stop = false) {
  const Turn turn = exchange.Begin(10);
  EXPECT_FALSE(turn.boundary);
  EXPECT_EQ(turn.weights.size(), kLayout.size());
  float* gradients = exchange.gradients().data;
  for (const Range& slice : kPieces.ranges) {
    for (int64_t i = slice.begin; i < slice.end; ++i) gradients[i] = Gradient(rank, step, i);
    exchange.Ready(slice);
  }
  return exchange.End({.samples = 10, .loss_sum = 2.5 * (rank + 1), .stop = stop});
}

inline std::vector<float> WeightsOf(Exchange& exchange) {
  exchange.Collect(false);
  const Blob weights = exchange.weights();
  return {weights.f32(), weights.f32() + weights.size()};
}

inline Envelope NextEnvelope(MessageChannel& channel) {
  Backoff backoff;
  for (;;) {
    if (auto envelope = channel.Next()) return std::move(*envelope);
    backoff.Pause();
  }
}

}  // namespace dtrain
