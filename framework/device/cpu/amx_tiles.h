// AMX's tile registers, for sources that end in _amx_isa.cc.  They are compiled once, with AVX-512
// and its bf16 conversions, and called only where AmxAvailable() (amx.h).
//
// Eight registers of up to 16 rows of 64 bytes.  A product multiplies A [rows][2 k] with B
// [k][16][2], pairs of bf16 side by side, and adds to C [rows][16] in fp32.  All kernels here use
// the registers alike, as a block of 2 x 2 products:
//   0 1    C of the first 16 rows       4    A of the first 16 rows      6  7    B
//   2 3    C of the other rows          5    A of the other rows
//
// These are assembler statements because the compiler's own (g++ 12) do not say that a
// configuration and a load read memory, and stores before them are lost.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define DTRAIN_INLINE inline __attribute__((always_inline))

namespace dtrain::DTRAIN_ISA_NS {

inline constexpr int64_t kTileLanes = 16;      // rows, and fp32 numbers of a row
inline constexpr int64_t kTileElements = 512;  // bf16 numbers

// The tiles of this thread while it lives.
class TileScope {
 public:
  // Rows of A and C, `rows` in all (at most 32); `pairs` of bf16 in a row of A.
  DTRAIN_INLINE TileScope(int64_t rows, int64_t pairs) {
    const int first = static_cast<int>(rows < kTileLanes ? rows : kTileLanes);
    const int second = static_cast<int>(rows) - first;
    Set(0, first, 64), Set(1, first, 64), Set(2, second, 64), Set(3, second, 64);
    Set(4, first, 4 * pairs), Set(5, second, 4 * pairs);
    Set(6, static_cast<int>(pairs), 64), Set(7, static_cast<int>(pairs), 64);
    asm volatile("ldtilecfg %0" ::"m"(config_) : "memory");
  }
  DTRAIN_INLINE ~TileScope() { asm volatile("tilerelease" ::: "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  DTRAIN_INLINE void Set(int tile, int rows, int64_t bytes) {
    config_.rows[tile] = static_cast<uint8_t>(rows);
    config_.row_bytes[tile] = static_cast<uint16_t>(rows == 0 ? 0 : bytes);
  }

  struct alignas(64) Config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  Config config_;
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

// c += a b
template <int c, int a, int b>
DTRAIN_INLINE void TileProduct() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
}

}  // namespace dtrain::DTRAIN_ISA_NS
