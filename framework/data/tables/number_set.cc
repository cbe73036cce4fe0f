#include "framework/data/tables/number_set.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// True for a channel whose values differ in their last digits only: a mean of many doubles is no more exact.
bool IsNearlyConstant(double mean, double deviation) {
  return !(deviation > 1e-11 * std::abs(mean)) || !std::isnormal(deviation);
}

struct MeanAndDeviation {
  std::vector<double> means, deviations;
  // Channels of deviation 1, because all their values are equal: they carry no information, whatever their divisor.
  std::vector<int64_t> constant;
};

MeanAndDeviation Of(std::vector<double> means, const std::vector<double>& variances) {
  MeanAndDeviation found{std::move(means), {}, {}};
  for (size_t c = 0; c < variances.size(); ++c) {
    const double deviation = std::sqrt(variances[c]);
    const bool constant = IsNearlyConstant(found.means[c], deviation);
    found.deviations.push_back(constant ? 1 : deviation);
    if (constant) found.constant.push_back(static_cast<int64_t>(c));
  }
  return found;
}

// Measures the channels of samples that have `each` values of the first channel, then of the next, and so on.  Each
// channel's sum is in sample order; memory is read once for each of the two sums.
template <class T>
MeanAndDeviation Measured(const std::vector<T>& values, size_t channels, size_t each) {
  const size_t samples = values.size() / (channels * each);
  const auto mean_of = [&](const auto& term) {
    std::vector<double> sums(channels);
    const T* from = values.data();
    for (size_t i = 0; i < samples; ++i) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t p = 0; p < each; ++p) sums[c] += term(c, static_cast<double>(*from++));
      }
    }
    for (double& sum : sums) sum /= static_cast<double>(samples * each);
    return sums;
  };
  std::vector<double> means = mean_of([](size_t, double x) { return x; });
  // A sum of a million equal doubles is not exact: their mean then differs from each of them by more than their digits.
  std::vector<bool> varies(channels);
  std::vector<double> variances = mean_of([&](size_t c, double x) {
    if (x != static_cast<double>(values[c * each])) varies[c] = true;
    return (x - means[c]) * (x - means[c]);
  });
  for (size_t c = 0; c < channels; ++c) {
    if (varies[c] || samples == 0) continue;
    means[c] = static_cast<double>(values[c * each]);
    variances[c] = 0;
  }
  return Of(std::move(means), variances);
}

}  // namespace

std::vector<int64_t> MeasureNumbers(const LabelledNumbers& numbers, ImageSetSpec& spec) {
  MeanAndDeviation found;
  if (numbers.of_all) {
    found = Of(numbers.of_all->means(), numbers.of_all->variances());
  } else {
    found = std::visit(
        [&](const auto& values) {
          return Measured(values, static_cast<size_t>(spec.image_shape[0]),
                          static_cast<size_t>(spec.image_shape.CountFrom(1)));
        },
        numbers.samples);
  }
  spec.mean = PerChannel(std::move(found.means));
  spec.deviation = PerChannel(std::move(found.deviations));
  return found.constant;
}

std::vector<int64_t> MeasureTargets(const std::vector<double>& targets, ImageSetSpec& spec) {
  MeanAndDeviation found = Measured(targets, static_cast<size_t>(spec.target_shape.count()), 1);
  spec.target_mean = PerChannel(std::move(found.means));
  spec.target_deviation = PerChannel(std::move(found.deviations));
  return found.constant;
}

NumberSet::NumberSet(const ImageSetSpec& spec, LabelledNumbers train, LabelledNumbers test)
    : spec_(spec), splits_{std::move(train), LabelledNumbers{}, std::move(test)} {
  DT_CHECK(spec.numbers);
  for (const Split split : kSplits) {
    const LabelledNumbers& part = numbers(split);
    const auto samples = static_cast<size_t>(size(split));
    DT_CHECK(CountOf(part.samples) == samples * spec.image_shape.count());
    DT_CHECK(part.classes.empty() || part.targets.empty());
    DT_CHECK(part.targets.size() % static_cast<size_t>(spec.target_shape.count()) == 0);
  }
}

int64_t NumberSet::size(Split split) const {
  const LabelledNumbers& part = numbers(split);
  if (spec_.classes > 0) return static_cast<int64_t>(part.classes.size());
  return static_cast<int64_t>(part.targets.size()) / spec_.target_shape.count();
}

void NumberSet::Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                     Batch& batch) const {
  DT_CHECK(static_cast<int64_t>(indices.size()) == batch.samples)
      << indices.size() << " indices for " << batch.samples << " rows";
  const LabelledNumbers& part = numbers(split);
  const int64_t channels = spec_.image_shape[0], each = spec_.image_shape.CountFrom(1);
  const int64_t width = spec_.target_shape.count();
  batch.loss_unit = spec_.loss_unit();
  float* to = batch.fields[0].f32();
  const auto fill_sample = [&](const auto& values, int64_t index) {
    const auto* from = values.data() + index * channels * each;
    for (int64_t c = 0; c < channels; ++c) {
      const double mean = spec_.mean[c], deviation = spec_.deviation[c];
      for (int64_t i = 0; i < each; ++i) {
        *to++ = static_cast<float>((static_cast<double>(*from++) - mean) / deviation);
      }
    }
  };
  for (size_t row = 0; row < indices.size(); ++row) {
    const int64_t index = indices[row];
    DT_CHECK(index >= 0 && index < size(split)) << "sample " << index << " of " << size(split);
    std::visit([&](const auto& values) { fill_sample(values, index); }, part.samples);
    if (spec_.classes > 0) {
      batch.fields[1].i32()[row] = part.classes[index];
      continue;
    }
    const double* target = part.targets.data() + index * width;
    float* const label = batch.fields[1].f32() + static_cast<int64_t>(row) * width;
    for (int64_t k = 0; k < width; ++k) {
      label[k] = static_cast<float>((target[k] - spec_.target_mean[k]) / spec_.target_deviation[k]);
    }
  }
}

DataHashes NumberSet::Hashes() const {
  return HashSplits(ToText(spec_), kSplits, [this](Split split, Sha256& hash) {
    const auto add = [&hash](const auto& values) {
      hash.Update(fmt::format("\n{}\n", values.size()));
      const auto bytes = std::as_bytes(std::span(values));
      hash.Update(bytes.data(), bytes.size());
    };
    const LabelledNumbers& part = numbers(split);
    std::visit(add, part.samples);
    add(part.classes);
    add(part.targets);
  });
}

}  // namespace dtrain
