#include "framework/kernels/cpu/token_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

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

void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const ConstMatrix& dy,
                       int64_t vocabulary, bool accumulate, float* dw) {
  const int64_t size = dy.columns;
  RunTeam(threads, [&](int thread, int team) {
    const Range mine = SplitEvenly({0, vocabulary}, team, thread);
    if (!accumulate) std::fill(dw + mine.begin * size, dw + mine.end * size, 0.0f);
    const float* from = dy.data;
    for (const int32_t token : tokens) {
      if (token >= mine.begin && token < mine.end) {
        float* const to = dw + token * size;
        for (int64_t j = 0; j < size; ++j) to[j] += from[j];
      }
      from += dy.stride;
    }
  });
}

}  // namespace dtrain
