#include "framework/runtime/weights/weights_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <span>

namespace dtrain {
namespace {

struct Piece {
  std::vector<int64_t> shape;
  std::span<const float> values;
};

std::map<std::string, Piece> PiecesOf(const StoredWeights& stored) {
  std::map<std::string, Piece> pieces;
  const auto add = [&](const ArenaLayout& layout, const std::vector<float>& arena) {
    for (const ArenaEntry& entry : layout.entries) {
      pieces[entry.name] = {entry.shape,
                            std::span(arena).subspan(entry.range.begin, entry.range.size())};
    }
  };
  add(stored.layout.parameters, stored.weights);
  add(stored.layout.state, stored.state);
  return pieces;
}

bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

void CompareValues(const Piece& a, const Piece& b, TensorDifference& difference) {
  double squares = 0, difference_squares = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    squares += x * x;
    if (SameBits(a.values[i], b.values[i])) continue;
    ++difference.elements;
    const double d =
        std::isfinite(x - y) ? std::abs(x - y) : std::numeric_limits<double>::infinity();
    difference.largest = std::max(difference.largest, d);
    difference_squares += d * d;
  }
  if (difference_squares > 0) difference.relative = std::sqrt(difference_squares / squares);
}

}  // namespace

std::vector<TensorDifference> Compare(const StoredWeights& a, const StoredWeights& b) {
  const auto of_a = PiecesOf(a);
  auto of_b = PiecesOf(b);
  std::vector<TensorDifference> differences;
  for (const auto& [name, piece] : of_a) {
    TensorDifference difference{name, "", 0, 0, 0};
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      difference.what = fmt::format("only in the first file: {}", piece.shape);
    } else if (other->second.shape != piece.shape) {
      difference.what = fmt::format("{} and {}", piece.shape, other->second.shape);
    } else {
      CompareValues(piece, other->second, difference);
    }
    if (other != of_b.end()) of_b.erase(other);
    if (!difference.what.empty() || difference.elements > 0) differences.push_back(difference);
  }
  for (const auto& [name, piece] : of_b) {
    differences.push_back({name, fmt::format("only in the second file: {}", piece.shape), 0, 0, 0});
  }
  std::ranges::sort(differences, {}, &TensorDifference::name);
  return differences;
}

int64_t CountTensors(const StoredWeights& a, const StoredWeights& b) {
  auto all = PiecesOf(a);
  all.merge(PiecesOf(b));
  return static_cast<int64_t>(all.size());
}

NonFinite CountNonFinite(const StoredWeights& stored) {
  const auto count = [](const std::vector<float>& values) {
    return std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  };
  NonFinite found{count(stored.weights) + count(stored.state), 0};
  for (const auto& [vector, values] : stored.solver) found.solver += count(values);
  return found;
}

}  // namespace dtrain
