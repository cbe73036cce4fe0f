// Implements the products of the bf16 convolution, in blocks of 2 x 2 tiles, and the table of all
// its loops.
#include "framework/device/cpu/amx_tiles.h"
#include "framework/device/cpu/amx_vectors.h"
#include "layers/convolution/bf16_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int64_t kRow = 64;  // bytes

DTRAIN_INLINE void ZeroSums() { TileZero<0>(), TileZero<1>(), TileZero<2>(), TileZero<3>(); }

// Adds the products of `count` squares of a and of b; squares of b are `step` numbers apart.
DTRAIN_INLINE void AddSquares(const Bf16* a, const Bf16* b, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; ++i, a += kBf16Square, b += step) {
    TileLoad<4>(a, kRow);
    TileLoad<6>(b, kRow);
    TileProduct<0, 4, 6>();
    TileLoad<7>(b + kTileElements, kRow);
    TileProduct<1, 4, 7>();
    TileLoad<5>(a + kTileElements, kRow);
    TileProduct<2, 5, 6>();
    TileProduct<3, 5, 7>();
  }
}

// Does the same for at most sixteen images.
DTRAIN_INLINE void AddHalfSquares(const Bf16* a, const Bf16* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i, a += kBf16Square, b += kBf16Square) {
    TileLoad<4>(a, kRow);
    TileLoad<6>(b, kRow);
    TileProduct<0, 4, 6>();
    TileLoad<7>(b + kTileElements, kRow);
    TileProduct<1, 4, 7>();
  }
}

template <bool half>
DTRAIN_INLINE void BeginPixel(const float* bias) {
  if (bias == nullptr) {
    TileZero<0>(), TileZero<1>();
    if (!half) TileZero<2>(), TileZero<3>();
    return;
  }
  // A stride of 0 loads the bias into every row.
  TileLoad<0>(bias, 0), TileLoad<1>(bias + kTileLanes, 0);
  if (!half) TileLoad<2>(bias, 0), TileLoad<3>(bias + kTileLanes, 0);
}

template <bool half>
DTRAIN_INLINE void StorePixel(const Bf16RowJob& job, float* to) {
  const int64_t image = job.image_floats * static_cast<int64_t>(sizeof(float));
  TileStore<0>(to, image), TileStore<1>(to + kTileLanes, image);
  if (half) return;
  to += kTileLanes * job.image_floats;
  TileStore<2>(to, image), TileStore<3>(to + kTileLanes, image);
}

DTRAIN_INLINE void ReluPixel(const Bf16RowJob& job, float* y) {
  for (int64_t i = 0; i < job.images; ++i, y += job.image_floats) {
    for (int64_t c = 0; c < kBf16Block; c += kTileLanes)
      StoreFloats(y + c, Relu(LoadFloats(y + c)));
  }
}

template <bool half>
void Row(const Bf16RowJob& job) {
  const TileScope tiles(job.images, kTileLanes);
  const int64_t pixel = job.blocks * kBf16Square;
  for (int64_t j = 0; j < job.columns; ++j) {
    const Bf16Window column = job.column[j];
    const int64_t count = column.count * job.blocks;
    BeginPixel<half>(job.bias);
    for (int64_t t = 0; t < job.row.count; ++t) {
      const Bf16* const a =
          job.input + (job.row.first + t) % job.ring * job.input_row + column.first * pixel;
      const Bf16* const b = job.weights + ((job.row.tap + t) * job.kernel + column.tap) * pixel;
      half ? AddHalfSquares(a, b, count) : AddSquares(a, b, count, kBf16Square);
    }
    float* const y = job.output + j * job.pixel_floats;
    StorePixel<half>(job, y);
    if (job.relu) ReluPixel(job, y);
  }
}

// Computes the output columns [begin, end) for which column kx of the window is inside the image.
DTRAIN_INLINE void InsideColumns(const Bf16WeightJob& job, int64_t kx, int64_t& begin,
                                 int64_t& end) {
  const int64_t shift = kx - job.pad;
  begin = shift >= 0 ? 0 : (-shift + job.stride - 1) / job.stride;
  const int64_t last = job.x_columns - 1 - shift;
  end = last < 0 ? 0 : last / job.stride + 1;
  if (end > job.columns) end = job.columns;
}

DTRAIN_INLINE void AddTap(const Bf16WeightJob& job, int64_t ky, int64_t kx) {
  int64_t begin = 0, end = 0;
  InsideColumns(job, kx, begin, end);
  const int64_t column = begin * job.stride - job.pad + kx;
  for (int64_t g = 0; g < job.groups; ++g) {
    for (int64_t r = 0; r < job.rows; ++r) {
      const int64_t row = (job.first_row + r) * job.stride - job.pad + ky;
      if (row < 0 || row >= job.x_rows) continue;
      AddSquares(job.dy + g * job.dy_group + (r * job.columns + begin) * kBf16Square,
                 job.x + g * job.x_group + (row % job.ring * job.x_columns + column) * kBf16Square,
                 end - begin, job.stride * kBf16Square);
    }
  }
}

}  // namespace

void Bf16Row(const Bf16RowJob& job) { job.images <= kTileLanes ? Row<true>(job) : Row<false>(job); }

void Bf16WeightSums(const Bf16WeightJob& job) {
  constexpr int64_t kTile = kTileLanes * kTileLanes;
  const TileScope tiles(kBf16Block, job.pairs);
  for (int64_t tap = job.first_tap; tap < job.first_tap + job.taps; ++tap) {
    float* const sums = job.sums + tap * 4 * kTile;
    if (job.fresh) {
      ZeroSums();
    } else {
      TileLoad<0>(sums, kRow), TileLoad<1>(sums + kTile, kRow);
      TileLoad<2>(sums + 2 * kTile, kRow), TileLoad<3>(sums + 3 * kTile, kRow);
    }
    AddTap(job, tap / job.kernel, tap % job.kernel);
    TileStore<0>(sums, kRow), TileStore<1>(sums + kTile, kRow);
    TileStore<2>(sums + 2 * kTile, kRow), TileStore<3>(sums + 3 * kTile, kRow);
  }
}

constinit const Bf16Loops kBf16Loops = {Bf16PackRows,      Bf16PackPairs, Bf16PackTurned,
                                        Bf16PackWeights,   Bf16Row,       Bf16WeightSums,
                                        Bf16WeightGradient};

}  // namespace dtrain::DTRAIN_ISA_NS
