#include "framework/data/tables/number_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/sha256.h"

namespace dtrain {

void MeasureNumbers(const LabelledNumbers& numbers, ImageSetSpec& spec) {
  const int64_t channels = spec.image_shape[0];
  const int64_t each = spec.image_shape.CountFrom(1);
  const int64_t values = channels * each;
  const int64_t samples = static_cast<int64_t>(numbers.samples.size()) / values;
  std::vector<float> means, deviations;
  for (int64_t c = 0; c < channels; ++c) {
    const auto sum_of = [&](const auto& term) {
      double sum = 0;
      for (int64_t i = 0; i < samples; ++i) {
        const float* from = numbers.samples.data() + i * values + c * each;
        for (int64_t p = 0; p < each; ++p) sum += term(from[p]);
      }
      return sum / static_cast<double>(samples * each);
    };
    const double mean = sum_of([](float x) { return static_cast<double>(x); });
    const double variance = sum_of([mean](float x) { return (x - mean) * (x - mean); });
    const auto deviation = static_cast<float>(std::sqrt(variance));
    means.push_back(static_cast<float>(mean));
    // Of a column that is the same everywhere nothing can be learned, whatever it is divided by.
    const bool same = !(deviation > 1e-6 * std::abs(mean)) || !std::isnormal(deviation);
    deviations.push_back(same ? 1.0f : deviation);
  }
  spec.mean = PerChannel(std::move(means));
  spec.deviation = PerChannel(std::move(deviations));
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

std::string NumberSet::ManifestHash() const {
  Sha256 hash;
  hash.Update(ToText(spec_));
  const auto add = [&hash](const auto& values) {
    hash.Update(fmt::format("\n{}\n", values.size()));
    const auto bytes = std::as_bytes(std::span(values));
    hash.Update(bytes.data(), bytes.size());
  };
  for (const LabelledNumbers& part : splits_) {
    add(part.samples);
    add(part.classes);
    add(part.targets);
  }
  return hash.HexDigest();
}

}  // namespace dtrain
