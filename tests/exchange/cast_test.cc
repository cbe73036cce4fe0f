// Tests of casts in an exchange: the sent values and the residuals, messages, and sums over the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "framework/exchange/transport_channel.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/compressors.h"

namespace dtrain {
namespace {

Wire WireOf(const std::string& cast) { return MakeCompress("{name: " + cast + "}").wire(); }

class EveryCast : public testing::TestWithParam<std::string> {};

// One worker.  At rate 1 the sent values are the decrease of the weights; they are added in the order of a plain loop.
TEST_P(EveryCast, SentAndKeptAreWhatWasAccumulatedToTheBit) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  LocalWorld::Run(1, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = 1}, 0);
    inputs.spec.actors.compress = MakeCompress("{name: " + GetParam() + "}");
    inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    const Wire wire = WireOf(GetParam());
    std::vector<float> weights = InitialWeights(), kept(weights.size());
    for (int step = 0; step < kSteps; ++step) {
      RunStep(exchange, 0, step);
      for (size_t i = 0; i < weights.size(); ++i) {
        const float all = kept[i] + Gradient(0, step, static_cast<int64_t>(i));
        const float sent = Rounded(wire, all);
        kept[i] = all - sent;
        ASSERT_EQ(sent + kept[i], all);
        weights[i] -= sent;
      }
    }
    EXPECT_EQ(WeightsOf(exchange), weights);
    for (const StateField& field : exchange.SaveOwn().state.fields) {
      if (field.name != kResidualName) continue;
      EXPECT_EQ(field.floats, kept);
    }
    EXPECT_EQ(exchange.stats().compression.density(), 1);
  });
}

// With plain SGD at rate 1, the decrease of the weights plus the residuals is the sum of the gradients of all steps
// and ranks.
TEST_P(EveryCast, SumsLoseNothingAndAgreeOnAllRanks) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  for (const auto& [ranks, collective] :
       {std::pair{2, "ordered"}, {3, "ordered"}, {5, "ordered"}, {3, "ring"}, {4, "ring"}}) {
    std::vector<std::vector<float>> weights(ranks), kept(ranks);
    LocalWorld::Run(ranks, [&, ranks = ranks, collective = collective](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = ranks}, 0);
      inputs.spec.actors.compress = MakeCompress("{name: " + GetParam() + "}");
      inputs.spec.collective = collective;
      inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
      ThreadedExchange exchange(transport, inputs.spec, 0);
      for (int step = 0; step < kSteps; ++step) {
        const StepOutcome outcome = RunStep(exchange, transport.rank(), step);
        EXPECT_EQ(outcome.samples, 10 * ranks);
        EXPECT_TRUE(outcome.finite);
      }
      weights[transport.rank()] = WeightsOf(exchange);
      for (const StateField& field : exchange.SaveOwn().state.fields) {
        if (field.name == kResidualName) kept[transport.rank()] = field.floats;
      }
    });
    const std::vector<float> initial = InitialWeights();
    for (size_t i = 0; i < initial.size(); i += 7) {
      double expected = 0, found = double{initial[i]} - weights[0][i], left = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(weights[rank][i], weights[0][i]) << ranks << " ranks, element " << i;
        found += kept[rank].at(i);
        left += std::abs(kept[rank].at(i));
        for (int step = 0; step < kSteps; ++step) {
          expected += Gradient(rank, step, static_cast<int64_t>(i));
        }
      }
      ASSERT_NEAR(found, expected, 2e-5) << ranks << " ranks, element " << i;
      ASSERT_LT(left, 0.04 * ranks) << "kept back, element " << i;
    }
  }
}

TEST_P(EveryCast, ANaNOfOneRankEndsTheStepOfAll) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    LocalWorld::Run(3, [&](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = 3}, 0);
      inputs.spec.actors.compress = MakeCompress("{name: " + GetParam() + "}");
      ThreadedExchange exchange(transport, inputs.spec, 0);
      EXPECT_TRUE(RunStep(exchange, transport.rank(), 0).finite);
      exchange.Begin(10);
      for (const Range& slice : kPieces.ranges) {
        for (int64_t i = slice.begin; i < slice.end; ++i) exchange.gradients().data[i] = 0.5F;
        if (transport.rank() == 1 && slice.begin == 701) exchange.gradients().data[800] = bad;
        exchange.Ready(slice);
      }
      EXPECT_FALSE(exchange.End({.samples = 10, .loss_sum = 1}).finite);
    });
  }
}

// A value beyond the format's range is not infinite: it is sent in several steps.
TEST_P(EveryCast, WhatIsTooLargeGoesOutLater) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  LocalWorld::Run(1, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = 1}, 0);
    inputs.spec.actors.compress = MakeCompress("{name: " + GetParam() + "}");
    inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    const float before = InitialWeights()[5];
    for (int step = 0; step < 3; ++step) {
      exchange.Begin(10);
      std::fill_n(exchange.gradients().data, kLayout.size(), 0.0F);
      if (step == 0) exchange.gradients().data[5] = 131072;  // twice 65536
      for (const Range& slice : kPieces.ranges) exchange.Ready(slice);
      EXPECT_TRUE(exchange.End({.samples = 10, .loss_sum = 1}).finite);
    }
    EXPECT_NEAR(WeightsOf(exchange)[5], before - 131072, 0.02);
  });
}

// Tests the whole vector and a server's shard, sent as bytes.
TEST_P(EveryCast, MessagesHaveHalfTheBytesAndTheValues) {
  constexpr int64_t kElements = 3001;
  const Wire wire = WireOf(GetParam());
  LocalWorld::Run(2, [&](Transport& transport) {
    BlobPools pools;
    TransportChannel channel(transport, pools);
    if (transport.rank() == 0) {
      VectorSlice whole{pools.New(kElements), 0, {100, 100 + kElements}, kDense, 0, wire};
      for (int64_t i = 0; i < kElements; ++i) {
        whole.blob.MutableF32()[i] = Rounded(wire, Gradient(0, 0, i));
      }
      EXPECT_EQ(whole.bytes(), 2 * kElements);
      const VectorSlice part = whole.Part({150, 1151});
      EXPECT_EQ(part.bytes(), 2 * 1001);
      channel.Send(1, {.slice = whole});
      const int64_t all = channel.traffic().bytes_sent;
      channel.Send(1, {.slice = part});
      EXPECT_EQ(all - (channel.traffic().bytes_sent - all), 2 * (kElements - 1001));
      while (channel.Sending()) EXPECT_FALSE(channel.Next());
    } else {
      for (const Range range : {Range{100, 100 + kElements}, Range{150, 1151}}) {
        const Envelope envelope = NextEnvelope(channel);
        ASSERT_TRUE(envelope.slice.has_value());
        EXPECT_EQ(envelope.slice->range, range);
        EXPECT_EQ(envelope.slice->wire, wire);
        for (int64_t i = range.begin; i < range.end; ++i) {
          ASSERT_EQ(*envelope.slice->At(i), Rounded(wire, Gradient(0, 0, i - 100))) << i;
        }
      }
    }
    transport.Barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryCast, testing::ValuesIn(CompressorNames(/*casts=*/true)));

}  // namespace
}  // namespace dtrain
