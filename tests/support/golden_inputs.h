// The weights, images and labels of tests/golden/lenet5_sgd.json, to the bit.
//
// The formulas that compute them from integers are in tools/pytorch/lenet_sgd.py, the Python version.  Every number is
// exact in fp32, so that both start from the same bits.  "inputs_check" in that file has the first few of each.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain::golden {

inline constexpr int64_t kBatch = 64;
inline constexpr int64_t kPixels = 28 * 28;

// SplitMix64's output function (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) of a
// counter.
inline uint64_t Bits(uint64_t stream, uint64_t index) {
  uint64_t x = (stream << 32) + index + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Returns a number in [-1, 1) with 20 bits.
inline float Unit(uint64_t stream, uint64_t index) {
  return static_cast<float>(Bits(stream, index) >> 44) / 524288.0f - 1.0f;
}

// A parameter of LeNet-5.  Its elements, in PyTorch's order, are Unit(100 + place, i) * 2^-exponent.
struct Parameter {
  std::string_view name;
  int exponent;
};

inline constexpr std::array<Parameter, 10> kParameters = {{
    {"conv1.weight", 1},
    {"conv1.bias", 3},
    {"conv2.weight", 2},
    {"conv2.bias", 4},
    {"fc1.weight", 3},
    {"fc1.bias", 4},
    {"fc2.weight", 2},
    {"fc2.bias", 4},
    {"fc3.weight", 2},
    {"fc3.bias", 4},
}};

// Fills the parameter of this name.  Returns false if LeNet-5 has none of that name.
inline bool FillParameter(std::string_view name, std::span<float> values) {
  for (size_t place = 0; place < kParameters.size(); ++place) {
    if (kParameters[place].name != name) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::ldexp(Unit(100 + place, i), -kParameters[place].exponent);
    }
    return true;
  }
  return false;
}

inline int32_t Label(uint64_t step, uint64_t sample) {
  return static_cast<int32_t>((Bits(300 + step, sample) >> 33) % 10);
}

// Fills the images of one step, row-major [kBatch, 1, 28, 28].
inline void FillImages(uint64_t step, std::span<float, kBatch * kPixels> images) {
  for (uint64_t n = 0; n < kBatch; ++n) {
    const uint64_t pattern = 400 + static_cast<uint64_t>(Label(step, n));
    for (uint64_t i = 0; i < kPixels; ++i) {
      const uint64_t at = n * kPixels + i;
      images[at] = (Unit(200 + step, at) + Unit(pattern, i)) / 2;
    }
  }
}

}  // namespace dtrain::golden
