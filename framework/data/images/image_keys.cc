#include "framework/data/images/image_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/device/cpu/threads.h"

namespace dtrain {

void PixelKeys::Configure(config::Reader& reader) {
  mean_ =
      static_cast<std::vector<double>>(reader.Numbers("mean", {})
                                           .Min(-1000)
                                           .Max(1000)
                                           .Help("mean of pixel / 255: [one for all] or one per "
                                                 "channel; []: measured on the training split"));
  deviation_ = static_cast<std::vector<double>>(
      reader.Numbers("deviation", {})
          .Min(1e-6)
          .Max(1000)
          .Help("deviation of pixel / 255: [one for all] or one per channel; []: measured on the "
                "training split"));
  augment_.padding =
      static_cast<int>(static_cast<int64_t>(reader.Int("crop", 0).Min(0).Max(1024).Help(
          "augmentation: shift each training image by up to N pixels; the border becomes black")));
  augment_.flip =
      reader.Bool("flip", false).Help("augmentation: mirror half of the training images");
}

void PixelKeys::ConfigureNumbers(config::Reader& reader) {
  mean_ = static_cast<std::vector<double>>(
      reader.Numbers("mean", {})
          .Min(-1e9)
          .Max(1e9)
          .Help("mean of the numbers: [one for all] or one per column (of images: per channel; of "
                "byte images: of pixel / 255); []: measured on the training split"));
  deviation_ = static_cast<std::vector<double>>(
      reader.Numbers("deviation", {})
          .Min(1e-9)
          .Max(1e9)
          .Help("deviation of the numbers, given like mean; []: measured on the training split"));
}

void PixelKeys::Check(config::Reader& reader, const ImageSetSpec& spec) const {
  const auto check = [&](const char* key, const std::vector<double>& numbers) {
    const auto channels = static_cast<size_t>(spec.image_shape[0]);
    if (numbers.size() <= 1 || numbers.size() == channels) return;
    const char* what = spec.numbers && spec.image_shape.rank() == 1 ? "column" : "channel";
    reader.AddError(key,
                    fmt::format("data.{} has {} numbers, a sample has {} {}s", key, numbers.size(),
                                channels, what),
                    fmt::format("give one number for all of them, or one for each {}", what));
  };
  check("mean", mean_);
  check("deviation", deviation_);
}

void PixelKeys::Fill(const LabelledImages& train, ImageSetSpec& spec) const {
  Fill([&] { MeasurePixels(train, spec); }, spec);
}

void PixelKeys::Fill(const std::function<void()>& measure, ImageSetSpec& spec) const {
  if (measures()) measure();
  const auto given = [&](const std::vector<double>& values) {
    const PerChannel exact(values);
    if (spec.numbers) return exact;
    const std::vector<float> floats = exact.floats();  // pixels are normalised in float
    return PerChannel(std::vector<double>(floats.begin(), floats.end()));
  };
  if (!mean_.empty()) spec.mean = given(mean_);
  if (!deviation_.empty()) spec.deviation = given(deviation_);
  spec.mean_measured = mean_.empty();
  spec.deviation_measured = deviation_.empty();
}

int DecodingThreads(int64_t wanted) {
  if (wanted > 0) return static_cast<int>(wanted);
  return std::max(1, static_cast<int>(UsableCpus().size()));
}

}  // namespace dtrain
