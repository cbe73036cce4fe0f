// Loops over tokens (nn/tokens.h).
#pragma once

#include <cstdint>
#include <span>

#include "framework/device/shape.h"
#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

// Tokens before the first `pad` of one row.
inline int64_t SentenceLength(const int32_t* tokens, int64_t count, int64_t pad) {
  int64_t length = 0;
  while (length < count && tokens[length] != pad) ++length;
  return length;
}

// Throws DataError, with sample and place in the sample, when a token of `shape` [N, ...] is
// outside [0, vocabulary).
void CheckTokens(const int32_t* tokens, const Shape& shape, int64_t vocabulary,
                 int64_t first_position, uint64_t step);

// The gradient of an embedding: row w of dw [vocabulary, size] = (or +=, if `accumulate`) the sum
// of the rows of dy [tokens, size] whose token is w.  Added in the order of the tokens; threads
// share out the vocabulary, so the bits do not depend on their number.
void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const ConstMatrix& dy,
                       int64_t vocabulary, bool accumulate, float* dw);

}  // namespace dtrain
