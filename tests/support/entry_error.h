// EntryError compares each parameter by itself: a wrong small gradient would not show beside a large one.
#pragma once

#include <cmath>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {

// The Euclidean norms of the difference of two arenas within an entry, and of the wanted values.
struct EntryError {
  double error = 0, norm = 0;

  EntryError(const ArenaEntry& entry, const std::vector<float>& got,
             const std::vector<float>& want) {
    for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
      error += std::pow(static_cast<double>(got[i]) - want[i], 2);
      norm += std::pow(want[i], 2);
    }
    error = std::sqrt(error);
    norm = std::sqrt(norm);
  }
};

}  // namespace dtrain
