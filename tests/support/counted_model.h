// Weights and batches that follow from names and counters, to the bit: the C++ version of tools/pytorch/counted.py,
// which documents the rules.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/golden_inputs.h"

namespace dtrain::counted {

// Returns the 32-bit FNV-1a hash.
inline uint64_t Stream(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

// Returns the smallest e with 6 * 4^e >= fan_in.
inline int Exponent(int64_t fan_in) {
  int e = 0;
  for (int64_t reach = 6; reach < fan_in; reach *= 4) ++e;
  return e;
}

// Fills the parameter or statistic of this name and shape, row-major.
inline void Fill(const std::string& name, const std::vector<int64_t>& shape,
                 std::span<float> values) {
  const uint64_t stream = Stream(name);
  int64_t fan_in = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) fan_in *= shape[axis];
  const bool matrix = shape.size() >= 2;
  const bool near_one = !matrix && (name.ends_with("running_var") || name.ends_with("weight"));
  const float scale = matrix ? std::ldexp(1.0f, -Exponent(fan_in)) : near_one ? 0.25f : 0.125f;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = golden::Unit(stream, i) * scale + (near_one ? 1.0f : 0.0f);
  }
}

inline std::vector<int32_t> Labels(int64_t samples, int64_t classes) {
  std::vector<int32_t> labels;
  for (int64_t n = 0; n < samples; ++n) {
    const uint64_t bits = golden::Bits(Stream("label"), static_cast<uint64_t>(n));
    labels.push_back(static_cast<int32_t>((bits >> 33) % static_cast<uint64_t>(classes)));
  }
  return labels;
}

// Returns [labels.size(), pixels].
inline std::vector<float> Images(const std::vector<int32_t>& labels, int64_t pixels) {
  std::vector<float> images;
  const uint64_t noise = Stream("data");
  for (const int32_t label : labels) {
    const uint64_t pattern = Stream("pattern " + std::to_string(label));
    for (int64_t i = 0; i < pixels; ++i) {
      const float sum =
          golden::Unit(noise, images.size()) + golden::Unit(pattern, static_cast<uint64_t>(i));
      images.push_back(sum / 2);
    }
  }
  return images;
}

// Returns [samples, places]: sentences of a field, with <sos> (2) first or <eos> (3) last, then <pad> (1).
inline std::vector<int32_t> Sentences(const std::string& field, int64_t samples, int64_t words,
                                      int64_t places, bool begin, bool end) {
  std::vector<int32_t> tokens(static_cast<size_t>(samples * places), 1);
  for (int64_t n = 0; n < samples; ++n) {
    const uint64_t of_length =
        golden::Bits(Stream(field + " words"), static_cast<uint64_t>(n)) >> 33;
    const auto length = static_cast<int64_t>(1 + of_length % static_cast<uint64_t>(places - 2));
    int32_t* at = tokens.data() + n * places;
    if (begin) *at++ = 2;
    for (int64_t i = 0; i < length; ++i) {
      const uint64_t bits =
          golden::Bits(Stream(field), static_cast<uint64_t>(places * n + i)) >> 33;
      *at++ = static_cast<int32_t>(4 + bits % static_cast<uint64_t>(words - 4));
    }
    if (end) *at = 3;
  }
  return tokens;
}

// Returns the gradient's component along the k-th direction, whose elements are uniform in [-1, 1).
inline double Projection(const std::string& name, int k, std::span<const float> values) {
  const uint64_t stream = Stream(name + " direction " + std::to_string(k));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(golden::Unit(stream, i));
  }
  return sum;
}

}  // namespace dtrain::counted
