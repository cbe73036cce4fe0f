// Makes values to select from, and selects from them in the plainest way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/core/random.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

template <class Value>
std::vector<float> Values(int64_t n, Value value) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = value(static_cast<uint64_t>(i));
  return values;
}

inline std::vector<float> NormalValues(int64_t n, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  return Values(n, [&](uint64_t i) { return random.Normal(i); });
}

// Draws from the density exp(-|u|) / 2.
inline std::vector<float> LaplaceValues(int64_t n, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  return Values(n, [&](uint64_t i) {
    const uint32_t bits = random.Bits(i);
    const double size = -std::log(((bits >> 1) + 0.5) * 0x1p-31);
    return static_cast<float>(bits & 1 ? size : -size);
  });
}

// Draws uniformly from [-1, 1).
inline std::vector<float> UniformValues(int64_t n, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  return Values(n, [&](uint64_t i) { return random.Uniform(i, -1, 1); });
}

// Returns the positions of values with |u| > threshold.  Zeros are left out.
inline std::vector<int32_t> Above(const std::vector<float>& values, double threshold) {
  std::vector<int32_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(static_cast<double>(values[i])) > std::max(threshold, 0.0)) {
      places.push_back(static_cast<int32_t>(i));
    }
  }
  return places;
}

// Returns the first k of `among` by descending |u|, then by position, in ascending order.  Zeros
// are left out.
inline std::vector<int32_t> LargestOf(const std::vector<float>& values, std::vector<int32_t> among,
                                      int64_t k) {
  std::erase_if(among, [&](int32_t place) { return values[place] == 0; });
  std::stable_sort(among.begin(), among.end(), [&](int32_t a, int32_t b) {
    return std::abs(static_cast<double>(values[a])) > std::abs(static_cast<double>(values[b]));
  });
  among.resize(std::min(among.size(), static_cast<size_t>(k)));
  std::sort(among.begin(), among.end());
  return among;
}

inline std::vector<int32_t> LargestOf(const std::vector<float>& values, int64_t k) {
  std::vector<int32_t> all(values.size());
  std::iota(all.begin(), all.end(), 0);
  return LargestOf(values, all, k);
}

// The positions that a selection chose from values passed in slices, and its number of passes.
struct Chosen {
  std::vector<int32_t> places;
  int looks = 0;
};

inline Chosen SelectIn(Selection& selection, const std::vector<float>& values, int64_t slice) {
  const int64_t n = std::ssize(values);
  const auto for_slices = [&](const auto& work) {
    for (int64_t at = 0; at < n; at += slice) {
      work(values.data() + at, Range{at, std::min(n, at + slice)});
    }
  };
  Chosen chosen;
  for (; selection.WantsLook(); ++chosen.looks) {
    for_slices([&](const float* part, Range range) { selection.Look(part, range); });
  }
  chosen.places.resize(values.size());
  int64_t count = 0;
  for_slices([&](const float* part, Range range) {
    count += selection.Choose(part, range, chosen.places.data() + count);
  });
  chosen.places.resize(static_cast<size_t>(count));
  return chosen;
}

// Returns the fraction of the sum of squares that stays unsent.
inline double PartKept(const std::vector<float>& values, const std::vector<int32_t>& sent) {
  double all = 0, moved = 0;
  for (const float value : values) all += static_cast<double>(value) * value;
  for (const int32_t place : sent) moved += static_cast<double>(values[place]) * values[place];
  return 1 - moved / all;
}

}  // namespace dtrain
