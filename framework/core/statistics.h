// Statistics of several values, for benchmarks and tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace dtrain {

// Returns the median, for an even count the upper of the two middle values; 0 for no values.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Moments {
  double mean = 0;
  double deviation = 0;  // sample deviation (n - 1); 0 for one value
};

inline Moments MomentsOf(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  Moments moments;
  for (const double value : values) moments.mean += value / n;
  for (const double value : values) {
    moments.deviation += (value - moments.mean) * (value - moments.mean);
  }
  moments.deviation = n > 1 ? std::sqrt(moments.deviation / (n - 1)) : 0;
  return moments;
}

}  // namespace dtrain
