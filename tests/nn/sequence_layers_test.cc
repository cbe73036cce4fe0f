// Tests what the layer suite cannot for layers that read sentences: padding changes nothing,
// searches agree with the forward pass, bits repeat, and error messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/step_decoder.h"
#include "framework/nn/tokens.h"
#include "tests/support/message_of.h"
#include "tests/support/sequence_inputs.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class RecurrentPadding : public testing::TestWithParam<std::string> {};

// A sentence gives the same bits alone, without padding, as between longer ones.
TEST_P(RecurrentPadding, ChangesNothing) {
  const std::string keys = "{hidden: 6, layers: 2, bidirectional: true}";
  const std::vector<int64_t> lengths = {5, 2, 7};
  LayerRun padded(GetParam(), keys, {{3, 8, 4}, {3, 8}}, {0, kWords}, {.mode = Mode::kEvaluate});
  FillParams(padded);
  FillSteps(padded.inputs[0], lengths, 3);
  FillSentences(padded.inputs[1], lengths);
  padded.Forward();
  for (int64_t n = 0; n < 3; ++n) {
    LayerRun alone(GetParam(), keys, {{1, lengths[n], 4}, {1, lengths[n]}}, {0, kWords},
                   {.mode = Mode::kEvaluate});
    FillParams(alone);
    std::copy_n(&padded.inputs[0].values[n * 8 * 4], lengths[n] * 4, &alone.inputs[0].values[0]);
    std::copy_n(padded.inputs[1].tensor.i32() + n * 8, lengths[n], alone.inputs[1].tensor.i32());
    alone.Forward();
    const auto& got = padded.outputs[0].values;
    const auto& want = alone.outputs[0].values;
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin() + n * 8 * 12)) << n;
    for (int64_t i = lengths[n] * 12; i < 8 * 12; ++i) EXPECT_EQ(got[n * 8 * 12 + i], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RecurrentPadding, testing::Values("gru", "lstm"));

TEST(AttentionDecoder, PaddingOfTheSourceChangesNothing) {
  Decoding tight(4, 5, {.mode = Mode::kEvaluate}), wide(9, 5, {.mode = Mode::kEvaluate});
  tight.run.Forward();
  wide.run.Forward();
  EXPECT_EQ(tight.run.outputs[0].values, wide.run.outputs[0].values);
}

TEST(AttentionDecoder, StepsRepeatToTheBitOnTwoThreads) {
  ApplyThreadBudget(2);
  std::vector<std::vector<float>> first;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Decoding decoding(5, 6, {.threads = 2, .seed = 4, .step = 9});
    decoding.run.Forward();
    decoding.run.Backward();
    std::vector<std::vector<float>> all = {decoding.run.outputs[0].values};
    for (const auto& gradient : decoding.run.param_gradients) all.push_back(gradient.values);
    if (repeat == 0) first = all;
    EXPECT_EQ(first, all);
  }
}

// Greedy search gives the scores of the forward pass that reads its own words.
TEST(AttentionDecoder, GreedySearchIsTheForwardPass) {
  Decoding decoding(4, 6, {.mode = Mode::kEvaluate});
  decoding.run.Forward();
  StepDecoder* const search = decoding.run.kernel().step_decoder();
  ASSERT_NE(search, nullptr);
  search->Start(decoding.run.Args());
  ASSERT_EQ(search->vocabulary(), kWords);
  ASSERT_EQ(search->sentences(), 3);
  std::vector<int64_t> parents = {0, 1, 2};
  std::vector<int32_t> tokens(3);
  for (int64_t n = 0; n < 3; ++n) tokens[n] = decoding.run.inputs[3].tensor.i32()[n * 6];
  std::vector<float> scores(3 * kWords);
  for (int64_t t = 0; t < 6; ++t) {
    search->Step(parents, tokens, scores.data());
    for (int64_t n = 0; n < 3; ++n) {
      const float* const logits = &decoding.run.outputs[0].values[(n * 6 + t) * kWords];
      double sum = 0;
      for (int64_t v = 0; v < kWords; ++v) sum += std::exp(static_cast<double>(logits[v]));
      for (int64_t v = 0; v < kWords; ++v) {
        EXPECT_NEAR(scores[n * kWords + v], logits[v] - std::log(sum), 2e-6) << t << " " << n;
      }
      tokens[n] = Best(&scores[n * kWords]);
      EXPECT_EQ(tokens[n], Best(logits));
    }
  }
}

// Rows that branch, change places and end give the same bits as alone.
TEST(AttentionDecoder, HypothesesAreIndependent) {
  Decoding decoding(4, 1, {.mode = Mode::kEvaluate});
  StepDecoder& search = *decoding.run.kernel().step_decoder();
  std::vector<float> scores(4 * kWords), alone(kWords);
  const auto step = [&](std::vector<int64_t> parents, std::vector<int32_t> tokens, float* to) {
    search.Step(parents, tokens, to);
  };
  search.Start(decoding.run.Args());
  step({2, 0, 1, 2}, {2, 2, 2, 3}, scores.data());
  step({3, 1, 3, 0}, {9, 8, 7, 6}, scores.data());  // sentence 1 has ended
  step({2, 0}, {5, 4}, scores.data());
  // Row 1's path alone:
  search.Start(decoding.run.Args());
  step({2}, {3}, alone.data());
  step({0}, {9}, alone.data());
  step({0}, {4}, alone.data());
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), scores.begin() + kWords));
}

TEST(AttentionDecoder, TrainingHasNoSearch) {
  Decoding decoding(4, 2, {});
  EXPECT_EQ(decoding.run.kernel().step_decoder(), nullptr);
}

TEST(Embedding, ATokenOutsideTheVocabularyIsNamed) {
  LayerRun run("embedding", "{outputs: 2}", {{2, 3}}, {5});
  run.inputs[0].tensor.i32()[4] = 5;
  EXPECT_THAT(MessageOf<DataError>([&] { run.Forward(); }),
              HasSubstr("token 5 at place 1 of the sentence at position 1 of the batch (step 0) is "
                        "outside [0, 5)"));
}

TEST(AttentionDecoder, ATargetOutsideTheVocabularyIsNamed) {
  Decoding decoding(4, 3, {});
  decoding.run.inputs[3].tensor.i32()[2] = -1;
  EXPECT_THAT(MessageOf<DataError>([&] { decoding.run.Forward(); }),
              HasSubstr("token -1 at place 2 of the sentence at position 0"));
}

TEST(Vocabulary, MustBeKnownAndLargeEnough) {
  EXPECT_EQ(VocabularyOf(0, 7, "it reads"), 7);
  EXPECT_EQ(VocabularyOf(9, 7, "it reads"), 9);
  EXPECT_EQ(VocabularyOf(9, 0, "it reads"), 9);
  EXPECT_THAT(MessageOf<ShapeError>([] { VocabularyOf(0, 0, "it reads"); }),
              testing::AllOf(HasSubstr("how many tokens it reads is unknown"),
                             HasSubstr("set the key vocabulary")));
  EXPECT_THAT(MessageOf<ShapeError>([] { VocabularyOf(5, 7, "it reads"); }),
              HasSubstr("a vocabulary of 5 tokens, but the tokens it reads go up to 6"));
}

std::string ShapesOf(const std::string& type, const std::string& keys,
                     const std::vector<Shape>& shapes, const std::vector<int64_t>& classes) {
  return MessageOf<ShapeError>([&] { LayerRun(type, keys, shapes, classes); });
}

TEST(SequenceLayers, SayWhichShapesDoNotFit) {
  EXPECT_THAT(ShapesOf("gru", "{hidden: 2}", {{2, 3, 4}, {2, 5}}, {0, 9}),
              HasSubstr("inputs of shapes [2, 3, 4] and [2, 5] do not fit"));
  EXPECT_THAT(ShapesOf("final_state", "{}", {{2, 3}, {2, 3}}, {0, 9}),
              HasSubstr("inputs of shapes [2, 3] and [2, 3] do not fit"));
  EXPECT_THAT(ShapesOf("final_state", "{bidirectional: true}", {{2, 3, 5}, {2, 3}}, {0, 9}),
              HasSubstr("states of length 5 are not of a bidirectional layer"));
  EXPECT_THAT(ShapesOf("concat", "{}", {{2, 3}, {3, 3}}, {0, 0}),
              HasSubstr("inputs of shapes [2, 3] and [3, 3] cannot be concatenated"));
  const std::string decoder = "{hidden: 2, embedding: 2}";
  EXPECT_THAT(
      ShapesOf("attention_decoder", decoder, {{2, 3, 4}, {2, 2}, {2, 4}, {2, 5}}, {0, 0, 9, 9}),
      HasSubstr("encoder outputs of shape [2, 3, 4] and source tokens of shape [2, 4]"));
  EXPECT_THAT(
      ShapesOf("attention_decoder", decoder, {{2, 3, 4}, {2, 3}, {2, 3}, {2, 5}}, {0, 0, 9, 9}),
      HasSubstr("a first state of shape [2, 3] does not fit; it takes [2, 2]"));
  EXPECT_THAT(
      ShapesOf("attention_decoder", decoder, {{2, 3, 4}, {2, 2}, {2, 3}, {3, 5}}, {0, 0, 9, 9}),
      HasSubstr("target tokens of shape [3, 5] do not fit 2 sentences"));
}

}  // namespace
}  // namespace dtrain
