// Wraps AMX's tile registers, for sources that end in _amx_isa.cc.  These are compiled with AVX-512 and its bf16
// conversions into the namespace isa_amx, and called there only where AmxAvailable() (core/isa.h).  For the tests they
// are compiled once more into isa_emulated, without any of these instructions: registers are then memory, and the
// results are the same to the bit (on threads that flush denormals, as all of dtrain's do).
//
// Eight registers of up to 16 rows of 64 bytes.  A product multiplies A [rows][2 k] with B
// [k][16][2], pairs of bf16 side by side, and adds to C [rows][16] in fp32.  All kernels here use
// the registers alike, as a block of 2 x 2 products:
//   0 1    C of the first 16 rows       4    A of the first 16 rows      6  7    B
//   2 3    C of the other rows          5    A of the other rows
//
// An element of C is, for a row of A with pairs a and a column of B with pairs b,
//   C += (a_0.low b_0.low + a_1.low b_1.low + ...) + (a_0.high b_0.high + ...)
// each sum one chain from 0, rounded to nearest even after each of its additions (the products are
// exact); denormals are 0 (Intel's manual, TDPBF16PS).
#pragma once

#include <cstdint>

#if DTRAIN_ISA_AMX
#include "framework/device/cpu/intrinsics.h"
#else
#include <cstdlib>
#include <cstring>
#endif

#define DTRAIN_INLINE inline __attribute__((always_inline))

namespace dtrain::DTRAIN_ISA_NS {

inline constexpr int64_t kTileLanes = 16;      // rows, and fp32 numbers per row
inline constexpr int64_t kTileElements = 512;  // bf16 numbers

// Holds the sizes of the registers: the memory that ldtilecfg reads.
class TileConfig {
 public:
  // `rows` is the number of rows of A and C (at most 32), `pairs` that of bf16 pairs in a row of A.
  DTRAIN_INLINE TileConfig(int64_t rows, int64_t pairs) {
    const int first = static_cast<int>(rows < kTileLanes ? rows : kTileLanes);
    const int second = static_cast<int>(rows) - first;
    Set(0, first, 64), Set(1, first, 64), Set(2, second, 64), Set(3, second, 64);
    Set(4, first, 4 * pairs), Set(5, second, 4 * pairs);
    Set(6, static_cast<int>(pairs), 64), Set(7, static_cast<int>(pairs), 64);
  }

  struct alignas(64) Memory {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  Memory memory;

 private:
  DTRAIN_INLINE void Set(int tile, int rows, int64_t bytes) {
    memory.rows[tile] = static_cast<uint8_t>(rows);
    memory.row_bytes[tile] = static_cast<uint16_t>(rows == 0 ? 0 : bytes);
  }
};

#if DTRAIN_ISA_AMX

// These are assembler statements because the compiler's intrinsics (g++ 12) do not declare that a configuration and a
// load read memory, so that preceding stores could be dropped.

// Configures the tiles of this thread while it lives.
class TileScope {
 public:
  DTRAIN_INLINE TileScope(int64_t rows, int64_t pairs) : config_(rows, pairs) {
    asm volatile("ldtilecfg %0" ::"m"(config_.memory) : "memory");
  }
  DTRAIN_INLINE ~TileScope() { asm volatile("tilerelease" ::: "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  TileConfig config_;
};

template <int tile>
DTRAIN_INLINE void TileZero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}

template <int tile>
DTRAIN_INLINE void TileLoad(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(tile) : "memory");
}

template <int tile>
DTRAIN_INLINE void TileStore(void* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(tile) : "memory");
}

// Computes c += a b.
template <int c, int a, int b>
DTRAIN_INLINE void TileProduct() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
}

#else

struct EmulatedTile {
  int rows = 0;
  int row_bytes = 0;
  alignas(64) unsigned char bytes[16][64] = {};
};

inline thread_local EmulatedTile emulated_tiles[8];

class TileScope {
 public:
  TileScope(int64_t rows, int64_t pairs) {
    const TileConfig config(rows, pairs);
    for (int t = 0; t < 8; ++t) {
      emulated_tiles[t] = {config.memory.rows[t], config.memory.row_bytes[t]};
    }
  }
  ~TileScope() {
    for (EmulatedTile& tile : emulated_tiles) tile = {};
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// Aborts where the hardware would fault: a register without rows is used, or shapes do not fit.
inline void CheckTile(bool sound) {
  if (!sound) std::abort();
}

template <int tile>
void TileZero() {
  CheckTile(emulated_tiles[tile].rows > 0);
  std::memset(emulated_tiles[tile].bytes, 0, sizeof(EmulatedTile::bytes));
}

// Elements beyond the configured rows and bytes become 0.
template <int tile>
void TileLoad(const void* from, int64_t row_bytes) {
  EmulatedTile& to = emulated_tiles[tile];
  TileZero<tile>();
  for (int row = 0; row < to.rows; ++row) {
    std::memcpy(to.bytes[row], static_cast<const unsigned char*>(from) + row * row_bytes,
                static_cast<size_t>(to.row_bytes));
  }
}

template <int tile>
void TileStore(void* to, int64_t row_bytes) {
  const EmulatedTile& from = emulated_tiles[tile];
  CheckTile(from.rows > 0);
  for (int row = 0; row < from.rows; ++row) {
    std::memcpy(static_cast<unsigned char*>(to) + row * row_bytes, from.bytes[row],
                static_cast<size_t>(from.row_bytes));
  }
}

// Splits the 32 bf16 numbers of a row into those at even places and those at odd ones.
inline void SplitPairs(const unsigned char* row, float (&low)[16], float (&high)[16]) {
  uint32_t words[16], lows[16], highs[16];
  std::memcpy(words, row, sizeof(words));
  for (int i = 0; i < 16; ++i) lows[i] = words[i] << 16, highs[i] = words[i] & 0xffff0000u;
  std::memcpy(low, lows, sizeof(lows));
  std::memcpy(high, highs, sizeof(highs));
}

// A register of the baseline set, as the compiler's vector type.
using FourLanes = float __attribute__((vector_size(16), may_alias));

template <int c, int a, int b>
void TileProduct() {
  const EmulatedTile& left = emulated_tiles[a];
  const EmulatedTile& right = emulated_tiles[b];
  EmulatedTile& sum = emulated_tiles[c];
  CheckTile(left.rows > 0 && left.rows == sum.rows && right.row_bytes == sum.row_bytes &&
            left.row_bytes == 4 * right.rows);
  const int pairs = left.row_bytes / 4;
  alignas(16) float b_low[16][16], b_high[16][16], a_low[16], a_high[16];
  for (int k = 0; k < pairs; ++k) SplitPairs(right.bytes[k], b_low[k], b_high[k]);
  for (int row = 0; row < sum.rows; ++row) {
    SplitPairs(left.bytes[row], a_low, a_high);
    FourLanes low[4] = {}, high[4] = {}, total[4];
    for (int k = 0; k < pairs; ++k) {
      const auto* const b_low_k = reinterpret_cast<const FourLanes*>(b_low[k]);
      const auto* const b_high_k = reinterpret_cast<const FourLanes*>(b_high[k]);
      for (int n = 0; n < 4; ++n) low[n] += a_low[k] * b_low_k[n];
      for (int n = 0; n < 4; ++n) high[n] += a_high[k] * b_high_k[n];
    }
    std::memcpy(total, sum.bytes[row], sizeof(total));
    for (int n = 0; n < 4; ++n) total[n] += low[n] + high[n];
    std::memcpy(sum.bytes[row], total, sizeof(total));
  }
}

#endif

}  // namespace dtrain::DTRAIN_ISA_NS
