#include "framework/compress/gdtopk/gdtopk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "framework/compress/device_values.h"
#include "framework/compress/sampled_largest.h"
#include "framework/compress/scan.h"
#include "framework/core/random.h"

namespace dtrain {
namespace {

constexpr int kRoundsMost = 10;
constexpr double kTooMany = 1.3, kTooFew = 0.8;  // factors of the target
constexpr float kLower = 0.8f;                   // factor of the threshold if there are too few

}  // namespace

SampledSelection::SampledSelection(int64_t n, double density, double sample_ratio,
                                   const SelectionKey& key)
    : n_(n), density_(density), target_(CeilOfShare(density, n)), left_(target_) {
  if (static_cast<double>(n) <= std::ceil(2 / density)) {
    places_.resize(static_cast<size_t>(n));
    std::iota(places_.begin(), places_.end(), 0);
  } else {
    DrawPlaces(n, CeilOfShare(sample_ratio, n), key);
  }
  sample_.reserve(places_.size());
}

void SampledSelection::DrawPlaces(int64_t n, int64_t draws, const SelectionKey& key) {
  const Random random = RandomOf(key);
  places_.reserve(static_cast<size_t>(draws));
  for (int64_t i = 0; i < draws; ++i) {
    places_.push_back(
        static_cast<int32_t>(random.Below(static_cast<uint64_t>(i), static_cast<uint64_t>(n))));
  }
  std::sort(places_.begin(), places_.end());
}

bool SampledSelection::WantsLook() {
  if (stage_ == Stage::kBegin) {
    stage_ = Stage::kSampling;
    return true;
  }
  if (stage_ == Stage::kSampling) {
    EndSampling();
    return true;
  }
  if (stage_ == Stage::kCounting) EndCounting();
  if (stage_ == Stage::kExact) return exact_->WantsLook();
  return stage_ != Stage::kKnown;
}

void SampledSelection::EndSampling() {
  const int64_t size = static_cast<int64_t>(sample_.size());
  const int64_t rank = std::clamp<int64_t>(CeilOfShare(density_, size), 1, size);
  const auto smallest = sample_.begin() + (rank - 1);
  std::nth_element(sample_.begin(), smallest, sample_.end(), std::greater<>());
  threshold_ = *smallest;
  stage_ = Stage::kCounting;
}

void SampledSelection::EndCounting() {
  const double count = static_cast<double>(count_), target = static_cast<double>(target_);
  if (count > kTooMany * target) {
    exact_ = SelectLargest(n_, target_);
    stage_ = Stage::kExact;
    return;
  }
  // A threshold that cannot be lowered further admits every nonzero value.
  const uint32_t lower = Magnitude(OfMagnitude(threshold_) * kLower);
  if (count < kTooFew * target && ++rounds_ < kRoundsMost && lower < threshold_) {
    threshold_ = lower;
    count_ = 0;
    return;
  }
  stage_ = Stage::kKnown;
}

void SampledSelection::Look(const float* values, Range part) {
  if (stage_ == Stage::kExact) return exact_->Look(values, part);
  if (stage_ == Stage::kSampling) {
    for (; next_place_ < places_.size() && places_[next_place_] < part.end; ++next_place_) {
      sample_.push_back(Magnitude(values[places_[next_place_] - part.begin]));
    }
    return;
  }
  count_ +=
      DTRAIN_ISA_SELECT(CpuIsa(), CountReaching)(values, part.size(), std::max(threshold_, 1u));
}

int64_t SampledSelection::Choose(const float* values, Range part, int32_t* chosen) {
  if (exact_) return exact_->Choose(values, part, chosen);
  const uint32_t least = std::max(threshold_, 1u);
  int64_t count = 0;
  for (int64_t i = 0; i < part.size() && count < left_; ++i) {
    if (Magnitude(values[i]) >= least) chosen[count++] = static_cast<int32_t>(part.begin + i);
  }
  left_ -= count;
  return count;
}

void SampledSelection::LookOn(DeviceValues& values) {
  if (stage_ == Stage::kExact) return exact_->LookOn(values);
  if (stage_ == Stage::kSampling) {
    for (const float value : values.At(places_)) sample_.push_back(Magnitude(value));
    return;
  }
  // If there are more than `most`, the exact selection follows.
  const auto most = static_cast<int64_t>(kTooMany * static_cast<double>(target_)) + 1;
  const ReachingEntries reached = values.Reaching(std::max(threshold_, 1u), most);
  count_ += reached.count;
  there_.assign(reached.entries.places.begin(), reached.entries.places.end());
}

int64_t SampledSelection::ChooseOn(DeviceValues& values, int32_t* chosen) {
  if (exact_) return exact_->ChooseOn(values, chosen);
  const int64_t count = std::min(left_, std::ssize(there_));
  std::copy_n(there_.begin(), count, chosen);
  return count;
}

namespace {

class GdTopK : public Compressor {
 public:
  void Configure(config::Reader& reader, CompressConfig& config) override {
    config.policy = static_cast<std::string>(
        reader.String("policy", "contribution")
            .OneOf({"contribution", "speed_gap"})
            .Help("contribution: slow groups send more of each gradient, as published; speed_gap: "
                  "fast groups do, in the time that they would wait"));
    const std::string flush = reader.String("flush", "epoch")
                                  .OneOf({"epoch", "none"})
                                  .Help(
                                      "epoch: send the whole residual at the end of each epoch; "
                                      "none: at the end of the run");
    config.flush_epochs = flush == "epoch";
    sample_ratio_ = reader.Number("sample_ratio", kSampleRatio)
                        .Above(0)
                        .Max(1)
                        .Help("fraction of a layer's values in the sample for its threshold");
  }
  Scope default_scope() const override { return Scope::kLayer; }
  bool density_by_strategy() const override { return true; }
  std::unique_ptr<Selection> Select(int64_t n, double density,
                                    const SelectionKey& key) const override {
    return std::make_unique<SampledSelection>(n, density, sample_ratio_, key);
  }
  int64_t Asked(int64_t n, double density) const override { return CeilOfShare(density, n); }
  int64_t EntriesMost(int64_t n, double density) const override { return Asked(n, density); }
  int passes() const override { return 3; }
  std::string cost_keys() const override {
    return sample_ratio_ == kSampleRatio ? "" : fmt::format("sample_ratio={}", sample_ratio_);
  }

 private:
  static constexpr double kSampleRatio = 0.01;  // default of the key
  double sample_ratio_ = kSampleRatio;
};

DTRAIN_COMPRESSOR(
    "gdtopk", GdTopK,
    "about the largest entries of each layer, by a sampled threshold; density set per group and "
    "epoch");

}  // namespace
}  // namespace dtrain
