// Numbers holds numbers of samples in the precision of their file: float, or double if the file has more digits.  Mean
// and deviation are measured, and taken off, before a number becomes a float: a time in seconds since 1970 has no digit
// left for seconds in a float.
#pragma once

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

namespace dtrain {

using Numbers = std::variant<std::vector<float>, std::vector<double>>;

inline size_t CountOf(const Numbers& numbers) {
  return std::visit([](const auto& values) { return values.size(); }, numbers);
}

// Returns the numbers as doubles.
inline std::vector<double> InDouble(const Numbers& numbers) {
  return std::visit(
      [](const auto& values) { return std::vector<double>(values.begin(), values.end()); },
      numbers);
}

// Returns floats if every number is one.
inline Numbers InFewestBits(std::vector<double> numbers) {
  const bool floats = std::ranges::all_of(
      numbers, [](double x) { return static_cast<double>(static_cast<float>(x)) == x; });
  if (floats) return std::vector<float>(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace dtrain
