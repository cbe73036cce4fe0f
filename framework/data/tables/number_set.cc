#include "framework/data/tables/number_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"

namespace dtrain {

namespace {

void SetMeanAndDeviation(const std::vector<double>& means, const std::vector<double>& variances,
                         ImageSetSpec& spec) {
  std::vector<float> deviations;
  for (size_t c = 0; c < means.size(); ++c) {
    const auto deviation = static_cast<float>(std::sqrt(variances[c]));
    // A constant column carries no information, whatever its divisor.
    const bool same = !(deviation > 1e-6 * std::abs(means[c])) || !std::isnormal(deviation);
    deviations.push_back(same ? 1.0f : deviation);
  }
  spec.mean = PerChannel(std::vector<float>(means.begin(), means.end()));
  spec.deviation = PerChannel(std::move(deviations));
}

}  // namespace

void MeasureNumbers(const LabelledNumbers& numbers, ImageSetSpec& spec) {
  if (numbers.of_all) {
    return SetMeanAndDeviation(numbers.of_all->means(), numbers.of_all->variances(), spec);
  }
  const auto channels = static_cast<size_t>(spec.image_shape[0]);
  const auto each = static_cast<size_t>(spec.image_shape.CountFrom(1));
  const size_t samples = numbers.samples.size() / (channels * each);
  // Each channel's sum is in sample order; memory is read once.
  const auto mean_of = [&](const auto& term) {
    std::vector<double> sums(channels);
    const float* from = numbers.samples.data();
    for (size_t i = 0; i < samples; ++i) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t p = 0; p < each; ++p) sums[c] += term(c, *from++);
      }
    }
    for (double& sum : sums) sum /= static_cast<double>(samples * each);
    return sums;
  };
  const std::vector<double> means = mean_of([](size_t, float x) { return static_cast<double>(x); });
  const std::vector<double> variances =
      mean_of([&](size_t c, float x) { return (x - means[c]) * (x - means[c]); });
  SetMeanAndDeviation(means, variances, spec);
}

NumberSet::NumberSet(const ImageSetSpec& spec, LabelledNumbers train, LabelledNumbers test)
    : spec_(spec), splits_{std::move(train), LabelledNumbers{}, std::move(test)} {
  DT_CHECK(spec.numbers);
  for (const Split split : kSplits) {
    const LabelledNumbers& part = numbers(split);
    const auto samples = static_cast<size_t>(size(split));
    DT_CHECK(part.samples.size() == samples * spec.image_shape.count());
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
  float* to = batch.fields[0].f32();
  for (size_t row = 0; row < indices.size(); ++row) {
    const int64_t index = indices[row];
    DT_CHECK(index >= 0 && index < size(split)) << "sample " << index << " of " << size(split);
    const float* from = part.samples.data() + index * channels * each;
    for (int64_t c = 0; c < channels; ++c) {
      const float mean = spec_.mean[c], deviation = spec_.deviation[c];
      for (int64_t i = 0; i < each; ++i) *to++ = (*from++ - mean) / deviation;
    }
    if (spec_.classes > 0) {
      batch.fields[1].i32()[row] = part.classes[index];
    } else {
      std::copy_n(part.targets.data() + index * width, width,
                  batch.fields[1].f32() + static_cast<int64_t>(row) * width);
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
    add(part.samples);
    add(part.classes);
    add(part.targets);
  });
}

}  // namespace dtrain
