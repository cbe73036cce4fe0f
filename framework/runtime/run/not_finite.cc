#include "framework/runtime/run/not_finite.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

bool Finite(const float* arena, const Range& range) {
  return std::all_of(arena + range.begin, arena + range.end,
                     [](float x) { return std::isfinite(x); });
}

}  // namespace

std::string FirstNotFinite(const ArenaLayout& layout, const float* weights,
                           const float* gradients) {
  for (const ArenaEntry& entry : layout.entries) {
    if (gradients != nullptr && !Finite(gradients, entry.range)) {
      return "the gradient of " + entry.name;
    }
    if (!Finite(weights, entry.range)) return "the weights of " + entry.name;
  }
  return "the loss";
}

}  // namespace dtrain
