#include "framework/kernels/cpu/reorder.h"

#include <algorithm>
#include <cstring>

#include "framework/core/check.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {
namespace {

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

// Converting sixteen samples of `features` numbers each to one block [features][16] is a transposition, independent of
// the axes after the batch.  It is done in 4 x 4 tiles, which fit in registers.
void Transpose4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Four row[4], pair[4];
  for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const Four*>(from + i * from_stride);
  pair[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  pair[1] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  pair[2] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  pair[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  row[0] = __builtin_shufflevector(pair[0], pair[2], 0, 1, 4, 5);
  row[1] = __builtin_shufflevector(pair[0], pair[2], 2, 3, 6, 7);
  row[2] = __builtin_shufflevector(pair[1], pair[3], 0, 1, 4, 5);
  row[3] = __builtin_shufflevector(pair[1], pair[3], 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i) *reinterpret_cast<Four*>(to + i * to_stride) = row[i];
}

// to[c * to_stride + r] = from[r * from_stride + c]
void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
               int64_t to_stride) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      Transpose4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r < whole_rows ? whole_columns : 0;
    for (int64_t c = first; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

// BlockSamples and UnblockSamples convert between samples in row-major order and blocks of sixteen samples.
void BlockSamples(const float* from, const Shape& shape, int threads, float* to) {
  const int64_t features = shape.CountFrom(1), blocks = (shape[0] + kBatchBlock - 1) / kBatchBlock;
  ParallelFor(threads, blocks, [&](int64_t block) {
    const int64_t first = block * kBatchBlock, samples = std::min(kBatchBlock, shape[0] - first);
    float* const out = to + first * features;
    if (samples < kBatchBlock) std::fill_n(out, features * kBatchBlock, 0.0f);
    Transpose(from + first * features, features, samples, features, out, kBatchBlock);
  });
}

void UnblockSamples(const float* from, const Shape& shape, int threads, float* to) {
  const int64_t features = shape.CountFrom(1), blocks = (shape[0] + kBatchBlock - 1) / kBatchBlock;
  ParallelFor(threads, blocks, [&](int64_t block) {
    const int64_t first = block * kBatchBlock, samples = std::min(kBatchBlock, shape[0] - first);
    Transpose(from + first * features, kBatchBlock, features, samples, to + first * features,
              features);
  });
}

// Transposes each sample's matrix [rows, columns].
void TurnSamples(const float* from, int64_t samples, int64_t rows, int64_t columns, int threads,
                 float* to) {
  ParallelFor(threads, samples, [&](int64_t n) {
    const int64_t at = n * rows * columns;
    Transpose(from + at, columns, rows, columns, to + at, rows);
  });
}

// Holds the offset of sample n, and the distances between neighbours along the channels and along the pixels (h and w
// together), in floats.
struct Strides {
  int64_t sample, channel, pixel;
};

Strides StridesOf(const Shape& shape, Format format, int64_t n) {
  const int64_t channels = shape[1], pixels = shape.CountFrom(2);
  if (format == Format::kChannelsLast) return {n * channels * pixels, 1, channels};
  if (format == Format::kPlain) return {n * channels * pixels, pixels, 1};
  const int64_t block = n / kBatchBlock;
  return {block * channels * pixels * kBatchBlock + n % kBatchBlock, pixels * kBatchBlock,
          kBatchBlock};
}

// Converts between channels_last and batch_blocked element by element; no model of this repository needs that often.
void CopyElements(const Tensor& from, const Tensor& to, int threads) {
  if (to.format == Format::kBatchBlocked) {
    std::memset(to.data, 0, StoredCount(to.shape, to.format) * sizeof(float));
  }
  const int64_t pixels = from.shape.CountFrom(2);
  ParallelFor(threads, from.shape[0], [&](int64_t n) {
    const Strides in = StridesOf(from.shape, from.format, n);
    const Strides out = StridesOf(to.shape, to.format, n);
    for (int64_t c = 0; c < from.shape[1]; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        to.f32()[out.sample + c * out.channel + p * out.pixel] =
            from.f32()[in.sample + c * in.channel + p * in.pixel];
      }
    }
  });
}

}  // namespace

void Reorder(const Tensor& from, const Tensor& to, const Device& device) {
  DT_CHECK(from.shape == to.shape) << from.shape.ToString() << " to " << to.shape.ToString();
  DT_CHECK(from.dtype == DType::kF32 && to.dtype == DType::kF32) << NameOf(from.dtype);
  const Shape& shape = from.shape;
  if (from.format == to.format) {
    std::memcpy(to.data, from.data, StoredCount(shape, from.format) * sizeof(float));
  } else if (from.format == Format::kPlain && to.format == Format::kBatchBlocked) {
    BlockSamples(from.f32(), shape, device.threads, to.f32());
  } else if (from.format == Format::kBatchBlocked && to.format == Format::kPlain) {
    UnblockSamples(from.f32(), shape, device.threads, to.f32());
  } else if (from.format == Format::kPlain) {
    TurnSamples(from.f32(), shape[0], shape[1], shape.CountFrom(2), device.threads, to.f32());
  } else if (to.format == Format::kPlain) {
    TurnSamples(from.f32(), shape[0], shape.CountFrom(2), shape[1], device.threads, to.f32());
  } else {
    CopyElements(from, to, device.threads);
  }
}

}  // namespace dtrain
