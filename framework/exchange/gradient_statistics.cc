#include "framework/exchange/gradient_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "framework/core/check.h"

namespace dtrain {
namespace {

double SquaresOf(const float* values, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

double Share(double part, double all) {
  return all > 0 ? part / all : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void MagnitudeHistogram::Add(const float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    auto& counts = (bits >> 31) != 0 ? negative : positive;
    ++counts[(bits >> 23) & 0xff];
    squares += static_cast<double>(values[i]) * values[i];
  }
}

void GradientStatistics::BeginBehind(int64_t steps) {
  steps_ = steps;
  sink_.BeginBehind(steps);
}

void GradientStatistics::SentWhole(Range range, const float* gradient, bool last) {
  const bool goes_on = record_.step == steps_ + 1 && range.begin == record_.range.end;
  if (!goes_on) record_ = {.step = steps_ + 1, .worker = worker_, .range = range};
  record_.range.end = range.end;
  record_.gradient.Add(gradient, range.size());
  if (last) sink_.Write(record_);
}

void GradientStatistics::BeginUnit(Range unit, const float* gradient, const float* from) {
  record_ = {.step = steps_ + 1, .worker = worker_, .range = unit};
  record_.gradient.Add(gradient, unit.size());
  record_.selection.emplace().from.Add(from, unit.size());
  kept_squares_ = 0;
  magnitudes_.assign(from, from + unit.size());
  for (float& value : magnitudes_) value = std::abs(value);
}

void GradientStatistics::Kept(const float* kept, int64_t n, int64_t taken) {
  kept_squares_ += SquaresOf(kept, n);
  record_.selection->selected += taken;
}

void GradientStatistics::EndUnit(double density, int64_t asked) {
  DT_CHECK(record_.selection.has_value());
  GradientSelection& selection = *record_.selection;
  const double all = selection.from.squares;
  selection.density = density;
  selection.asked = asked;
  selection.error = Share(kept_squares_, all);
  selection.error_of_largest = Share(ErrorOfLargest(asked), all);
  sink_.Write(record_);
}

// Returns ||u - C(u)||^2 for the k largest entries.  Entries of equal magnitude have equal squares,
// so it does not matter which of them are taken.  NaN if a value is not finite, since the order is
// then undefined.
double GradientStatistics::ErrorOfLargest(int64_t k) {
  const auto n = static_cast<int64_t>(magnitudes_.size());
  if (!std::isfinite(record_.selection->from.squares)) return std::nan("");
  if (k >= n) return 0;
  std::nth_element(magnitudes_.begin(), magnitudes_.begin() + k, magnitudes_.end(),
                   std::greater<>());
  return SquaresOf(magnitudes_.data() + k, n - k);
}

}  // namespace dtrain
