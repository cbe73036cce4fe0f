#include "framework/kernels/cpu/loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

void AddInto(const Device& device, int64_t count, const float* addend, float* sum) {
  ForEachSlice(device.threads, count, [&](Range slice) {
    DTRAIN_ISA_SELECT(device.isa, AddLoop)
    (slice.size(), addend + slice.begin, sum + slice.begin);
  });
}

void SumOverRows(const Device& device, const ConstMatrix& x, bool accumulate, float* sum) {
  RunTeam(device.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, x.columns}, team, thread);
    DTRAIN_ISA_SELECT(device.isa, SumColumns)
    (x.data + share.begin, x.stride, x.rows, share.size(), accumulate, sum + share.begin);
  });
}

void MaskGradient(int threads, int64_t count, const float* y, float* dy) {
  ForEachSlice(threads, count, [&](Range r) {
    for (int64_t i = r.begin; i < r.end; ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
  });
}

DropoutSample SampleOf(const Random& random, double ratio) {
  const auto key = random.key(), high = random.counter_high();
  return {{key[0], key[1]},
          {high[0], high[1]},
          static_cast<uint32_t>(ratio * 0x1p32),
          static_cast<float>(1 / (1 - ratio))};
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
