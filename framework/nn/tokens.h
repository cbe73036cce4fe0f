// What layers that read sentences agree on: tokens are int32 [N, T], and behind the end of a
// sentence there is nothing but a padding token.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/config/reader.h"
#include "framework/device/shape.h"

namespace dtrain {

inline constexpr int64_t kPadToken = 1;  // the default of the key `pad`

// Tokens before the first `pad` of one row.
inline int64_t SentenceLength(const int32_t* tokens, int64_t count, int64_t pad) {
  int64_t length = 0;
  while (length < count && tokens[length] != pad) ++length;
  return length;
}

// The key `vocabulary`: 0 means as many as the input may hold.
int64_t ReadVocabulary(config::Reader& reader);

// The key's value, else what the input says (Layer::SetInputClasses).  Throws ShapeError when
// neither is known or the input may hold tokens beyond the key's.  `reads`: "it reads", for the
// message.
int64_t VocabularyOf(int64_t key, int64_t classes, const std::string& reads);

// Throws DataError, with sample and place in the sample, when a token of `shape` [N, ...] is
// outside [0, vocabulary).
void CheckTokens(const int32_t* tokens, const Shape& shape, int64_t vocabulary,
                 int64_t first_position, uint64_t step);

// The gradient of an embedding: row w of dw [vocabulary, size] = (or +=, if `accumulate`) the sum
// of the rows of dy, `stride` apart, whose token is w.  Added in the order of the tokens; threads
// share out the vocabulary, so the bits do not depend on their number.
void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const float* dy,
                       int64_t stride, int64_t vocabulary, int64_t size, bool accumulate,
                       float* dw);

}  // namespace dtrain
