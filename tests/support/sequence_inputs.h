// Sentences and numbers for the tests of sequence layers, and an attention decoder.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/nn/tokens.h"
#include "tests/support/layer_run.h"

namespace dtrain {

inline constexpr int64_t kWords = 23;

inline void Fill(LayerArray& array, uint64_t stream) {
  const Random random(7, Purpose::kSelfTest, stream);
  for (size_t i = 0; i < array.values.size(); ++i) array.values[i] = random.Uniform(i, -1, 1);
}

inline void FillParams(LayerRun& run) {
  for (size_t p = 0; p < run.params.size(); ++p) Fill(run.params[p], 100 + p);
}

// Fills in the words of sentences; they do not depend on the length of the row.
inline void FillSentences(LayerArray& array, const std::vector<int64_t>& lengths) {
  const int64_t steps = array.tensor.shape[1];
  for (int64_t n = 0; n < array.tensor.shape[0]; ++n) {
    const Random random(7, Purpose::kSelfTest, 50, static_cast<uint64_t>(n));
    for (int64_t t = 0; t < steps; ++t) {
      const auto word = static_cast<int32_t>(2 + random.Below(t, kWords - 2));
      array.tensor.i32()[n * steps + t] = t < lengths[n] ? word : kPadToken;
    }
  }
}

// Fills numbers [N, T, I] that depend on their position in a sentence, not on T; padding gets `behind`.
inline void FillSteps(LayerArray& array, const std::vector<int64_t>& lengths, float behind) {
  const Shape& shape = array.tensor.shape;
  for (int64_t i = 0; i < shape.count(); ++i) {
    const int64_t n = i / (shape[1] * shape[2]), t = i / shape[2] % shape[1];
    const Random random(7, Purpose::kSelfTest, 60, static_cast<uint64_t>(n));
    array.values[i] = t < lengths[n] ? random.Uniform(t * shape[2] + i % shape[2], -1, 1) : behind;
  }
}

inline constexpr char kDecoder[] = "{hidden: 6, embedding: 5, attention: 7, dropout: 0.3}";

struct Decoding {
  explicit Decoding(int64_t source, int64_t target, const LayerRunOptions& options)
      : run("attention_decoder", kDecoder, {{3, source, 8}, {3, 6}, {3, source}, {3, target}},
            {0, 0, kWords, kWords}, options) {
    const std::vector<int64_t> lengths = {4, 2, 3};
    FillParams(run);
    FillSteps(run.inputs[0], lengths, 5);
    Fill(run.inputs[1], 1);
    FillSentences(run.inputs[2], lengths);
    FillSentences(run.inputs[3], {target, target, target});
    Fill(run.output_gradients[0], 2);
  }
  LayerRun run;
};

inline int32_t Best(const float* scores) {
  return static_cast<int32_t>(std::max_element(scores, scores + kWords) - scores);
}

}  // namespace dtrain
