// Random selections of all ranks, with all awkward kinds.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/comm/sparse_world.h"

namespace dtrain {

struct SparseCase {
  int64_t n = 0;
  int64_t k = 0;
  std::vector<Selected> mine;  // by rank
  bool whole = false;          // values are small whole numbers, so that sums are exact
};

// Returns distinct ascending positions in [begin, end).
inline std::vector<int32_t> DrawPositions(Draws& draws, int64_t begin, int64_t end, int64_t count) {
  std::set<int32_t> positions;
  count = std::min(count, end - begin);
  while (static_cast<int64_t>(positions.size()) < count) {
    positions.insert(static_cast<int32_t>(draws.Between(begin, end - 1)));
  }
  return {positions.begin(), positions.end()};
}

// Returns positions in [0, n), more of them the lower they are.
inline std::vector<int32_t> DrawUnevenPositions(Draws& draws, int64_t n, int64_t count) {
  std::set<int32_t> positions;
  while (static_cast<int64_t>(positions.size()) < count) {
    const double place = draws.Real(0, 1);
    positions.insert(static_cast<int32_t>(place * place * place * static_cast<double>(n - 1)));
  }
  return {positions.begin(), positions.end()};
}

inline float DrawValue(Draws& draws, bool whole) {
  if (whole) return static_cast<float>(draws.Between(-4, 4));  // many are equal, some zero
  const double size = std::pow(10.0, draws.Real(-3, 3));
  return static_cast<float>(draws.Coin() ? size : -size);
}

// Returns selections of about k entries from vectors of n floats.
inline SparseCase DrawSelections(Draws& draws, int ranks, int64_t n, int64_t k, bool whole) {
  SparseCase drawn{.n = n, .k = k, .mine = {}, .whole = whole};
  const bool crowded = draws.Below(4) == 0;  // all entries are in one part of the vector
  const int64_t begin = crowded ? draws.Below(n) : 0;
  const int64_t end = crowded ? std::min(n, begin + std::max<int64_t>(1, n / 20)) : n;
  for (Rank rank = 0; rank < ranks; ++rank) {
    Selected selected;
    const bool none = draws.Below(5) == 0;
    const int64_t count = none ? 0 : draws.Between(0, 2 * k);
    selected.positions = DrawPositions(draws, begin, end, count);
    for (size_t i = 0; i < selected.positions.size(); ++i) {
      selected.values.push_back(DrawValue(draws, whole));
    }
    drawn.mine.push_back(std::move(selected));
  }
  return drawn;
}

inline SparseCase DrawCase(uint64_t seed, int ranks) {
  Draws draws(seed);
  const int64_t n = draws.Coin() ? draws.Between(1, 8) : draws.Between(1, 2000);
  const int64_t k = draws.Between(1, std::max<int64_t>(1, n / (draws.Coin() ? 3 : 40)));
  return DrawSelections(draws, ranks, n, k, draws.Coin());
}

}  // namespace dtrain
