// Compares dropout, the decoder's dropout and teacher forcing with counted_random.h, which derives
// the masks and coins without the product's code, from seed, layer, step and position in the global
// batch.
#include <gtest/gtest.h>

#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "layers/dropout/dropout.h"
#include "tests/support/counted_random.h"
#include "tests/support/small_seq2seq.h"

namespace dtrain {
namespace {

constexpr uint64_t kSeeds[] = {1, 2, uint64_t{1} << 40};
constexpr uint64_t kSteps[] = {0, 1, 5000, uint64_t{1} << 33};
constexpr int64_t kPositions[] = {0, 1, 1000003};

TEST(RandomChoices, AreThoseOfTheOracle) {
  for (const uint64_t seed : kSeeds) {
    for (const uint64_t layer : {0, 7}) {
      for (const uint64_t step : kSteps) {
        for (const int64_t position : kPositions) {
          const Random dropout = DropoutRandom(seed, layer, step, position);
          const Random decoder = DecoderDropout(seed, layer, step, position, 3);
          for (int64_t i = 0; i < 9; ++i) {
            EXPECT_EQ(dropout.Bits(i) < 0x60000000u,
                      counted_random::Dropped(0.375, seed, layer, step, position, i));
            EXPECT_EQ(decoder.Bits(i) < 0x60000000u,
                      counted_random::DecoderDropped(0.375, seed, layer, step, position, 3, i));
          }
        }
        for (int64_t t = 1; t < 20; ++t) {
          EXPECT_EQ(TeacherForces(0.375, seed, layer, step, t),
                    counted_random::Forced(0.375, seed, layer, step, t));
        }
      }
    }
  }
}

// A training step of this net shows the dropout layer's mask, because the loss depends on every
// element.
constexpr int64_t kDrawn = 6, kElements = 37;
constexpr char kDropping[] = R"(
name: dropping
layers:
  - {name: first, type: inner_product, outputs: 37}
  - {name: drop, type: dropout, ratio: 0.375}
  - {name: fc, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
constexpr uint64_t kDropLayer = 1;

// Returns dropped[i] for the only sample of the batch: with all inputs 1, the gradient of the last
// layer's weight i is 0 if element i was dropped.
std::vector<bool> DroppedElements(uint64_t seed, uint64_t step, int64_t position) {
  const Graph graph = Graph::FromText(kDropping, "m.yaml",
                                      {{"data", DType::kF32, {1}}, {"label", DType::kI32, {}}});
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()), 0.25f);
  std::vector<float> gradients(weights.size());
  float one = 1;
  int32_t label = 0;
  const Tensor fields[] = {{&one, {1, 1}}, {&label, {1}, DType::kI32}};
  NetInput input;
  input.fields = fields;
  input.samples = 1;
  input.global_samples = kDrawn;
  input.first_position = position;
  input.seed = seed;
  input.step = step;
  net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  std::vector<bool> dropped;
  for (const ArenaEntry& entry : graph.weights().entries) {
    if (entry.name != "fc.weight") continue;
    for (int64_t i = 0; i < kElements; ++i)
      dropped.push_back(gradients[entry.range.begin + i] == 0);
  }
  return dropped;
}

TEST(RandomChoices, ANetDropsByTheOraclesMask) {
  ApplyThreadBudget(1);
  for (const uint64_t seed : kSeeds) {
    for (const uint64_t step : kSteps) {
      for (int64_t position = 0; position < kDrawn; ++position) {
        std::vector<bool> expected;
        for (int64_t i = 0; i < kElements; ++i) {
          expected.push_back(counted_random::Dropped(0.375, seed, kDropLayer, step, position, i));
        }
        EXPECT_EQ(DroppedElements(seed, step, position), expected)
            << "seed " << seed << ", step " << step << ", position " << position;
      }
    }
  }
}

// Each token of the targets occurs in one place only.  So the gradient of its embedding shows
// whether teacher forcing chose that place, and which elements were dropped there.  The decoder's
// own choice is always the last token.
constexpr int64_t kTaught = 5, kEmbedding = 9, kVocabulary = 40, kSourceLength = 3;
constexpr uint64_t kDecoderLayer = 5;

// used[n][t][i]: element i of the embedding of target n's token t reached the loss.
using Used = std::vector<std::vector<std::vector<bool>>>;

// Runs one step of samples [first, first + count) of the batch.
Used UsedElements(const std::string& keys, uint64_t seed, uint64_t step, int64_t first,
                  int64_t count, int threads) {
  ApplyThreadBudget(threads);
  const Graph graph = GraphOf({.source_length = kSourceLength,
                               .target_length = kTaught,
                               .target_words = kVocabulary,
                               .decoder = fmt::format("embedding: {}, {}", kEmbedding, keys)});
  Net net(graph, {DeviceKind::kCpu, threads, CpuIsa()});
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  std::vector<float> gradients(weights.size());
  graph.InitializeWeights(3, weights.data());
  const auto entry = [&](const std::string& name) -> const ArenaEntry& {
    for (const ArenaEntry& e : graph.weights().entries) {
      if (e.name == name) return e;
    }
    throw std::runtime_error("no parameter " + name);
  };
  weights[static_cast<size_t>(entry("decoder.fc_out.bias").range.end - 1)] = 30;
  std::vector<int32_t> source, target, label;
  for (int64_t n = first; n < first + count; ++n) {
    for (int64_t j = 0; j < kSourceLength; ++j) source.push_back(static_cast<int32_t>(4 + n + j));
    for (int64_t t = 0; t < kTaught; ++t) {
      target.push_back(static_cast<int32_t>(2 + n * kTaught + t));
      label.push_back(2);
    }
  }
  const Tensor fields[] = {{source.data(), {count, kSourceLength}, DType::kI32},
                           {target.data(), {count, kTaught}, DType::kI32},
                           {label.data(), {count, kTaught}, DType::kI32}};
  NetInput input;
  input.fields = fields;
  input.samples = count;
  input.first_position = first;
  input.global_samples = kDrawn;
  input.global_terms = kDrawn * kTaught;
  input.seed = seed;
  input.step = step;
  net.Step(weights.data(), gradients.data(), nullptr, input, nullptr);
  ApplyThreadBudget(1);
  const float* const rows = gradients.data() + entry("decoder.embedding.weight").range.begin;
  Used used(count, {kTaught, std::vector<bool>(kEmbedding)});
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t t = 0; t < kTaught; ++t) {
      const float* const row = rows + target[n * kTaught + t] * kEmbedding;
      for (int64_t i = 0; i < kEmbedding; ++i) used[n][t][i] = row[i] != 0;
    }
  }
  return used;
}

TEST(RandomChoices, ADecoderIsTaughtByTheOraclesCoins) {
  static_assert(2 + kDrawn * kTaught < kVocabulary);
  for (const uint64_t seed : kSeeds) {
    for (const uint64_t step : kSteps) {
      const Used used = UsedElements("teacher_forcing: 0.375", seed, step, 0, kDrawn, 1);
      for (int64_t n = 0; n < kDrawn; ++n) {
        for (int64_t t = 0; t < kTaught; ++t) {
          const bool taught = t == 0 || counted_random::Forced(0.375, seed, kDecoderLayer, step, t);
          EXPECT_EQ(used[n][t], std::vector<bool>(kEmbedding, taught))
              << "seed " << seed << ", step " << step << ", sentence " << n << ", token " << t;
        }
      }
    }
  }
}

TEST(RandomChoices, ADecoderDropsByTheOraclesMask) {
  for (const uint64_t seed : kSeeds) {
    for (const uint64_t step : kSteps) {
      const Used used =
          UsedElements("dropout: 0.375, teacher_forcing: 1", seed, step, 0, kDrawn, 1);
      for (int64_t n = 0; n < kDrawn; ++n) {
        for (int64_t t = 0; t < kTaught; ++t) {
          std::vector<bool> kept;
          for (int64_t i = 0; i < kEmbedding; ++i) {
            kept.push_back(
                !counted_random::DecoderDropped(0.375, seed, kDecoderLayer, step, n, t, i));
          }
          EXPECT_EQ(used[n][t], kept)
              << "seed " << seed << ", step " << step << ", sentence " << n << ", token " << t;
        }
      }
    }
  }
}

// A worker's share or a micro-batch of the batch gets the same choices in the same places.
TEST(RandomChoices, PartsOfABatchAndThreadsChooseAlike) {
  const std::string keys = "dropout: 0.375, teacher_forcing: 0.5";
  const Used whole = UsedElements(keys, 1, 9, 0, kDrawn, 1);
  EXPECT_EQ(UsedElements(keys, 1, 9, 0, kDrawn, 2), whole);
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}, {5, 1}}) {
    const Used part = UsedElements(keys, 1, 9, first, count, 1);
    EXPECT_EQ(part, Used(whole.begin() + first, whole.begin() + first + count)) << first;
  }
  EXPECT_NE(UsedElements(keys, 1, 10, 0, kDrawn, 1), whole) << "another step";
  EXPECT_NE(UsedElements(keys, 2, 9, 0, kDrawn, 1), whole) << "another seed";
}

}  // namespace
}  // namespace dtrain
