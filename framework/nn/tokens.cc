#include "framework/nn/tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

int64_t ReadVocabulary(config::Reader& reader) {
  return reader.Int("vocabulary", 0)
      .Min(0)
      .Help("how many tokens it knows; 0: all its input may hold");
}

int64_t VocabularyOf(int64_t key, int64_t classes, const std::string& reads) {
  if (key == 0 && classes == 0) {
    throw ShapeError("how many tokens " + reads + " is unknown",
                     "name a model input of tokens that says how many there are, or set the key "
                     "vocabulary");
  }
  if (key > 0 && classes > key) {
    throw ShapeError(fmt::format("a vocabulary of {} tokens, but the tokens {} go up to {}", key,
                                 reads, classes - 1),
                     "leave the key vocabulary out: it then follows the data set");
  }
  return key > 0 ? key : classes;
}

void CheckTokens(const int32_t* tokens, const Shape& shape, int64_t vocabulary,
                 int64_t first_position, uint64_t step) {
  const int64_t length = shape.CountFrom(1);
  for (int64_t i = 0; i < shape.count(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocabulary) continue;
    throw DataError(
        fmt::format("token {} at place {} of the sentence at position {} of the batch "
                    "(step {}) is outside [0, {})",
                    tokens[i], i % length, first_position + i / length, step, vocabulary),
        "was the model made for another vocabulary?");
  }
}

void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const float* dy,
                       int64_t stride, int64_t vocabulary, int64_t size, bool accumulate,
                       float* dw) {
  RunTeam(threads, [&](int thread, int team) {
    const Range mine = SplitEvenly({0, vocabulary}, team, thread);
    if (!accumulate) std::fill(dw + mine.begin * size, dw + mine.end * size, 0.0f);
    const float* from = dy;
    for (const int32_t token : tokens) {
      if (token >= mine.begin && token < mine.end) {
        float* const to = dw + token * size;
        for (int64_t j = 0; j < size; ++j) to[j] += from[j];
      }
      from += stride;
    }
  });
}

}  // namespace dtrain
