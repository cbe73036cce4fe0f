// Tells which axis of images [N, ., ., .] in a file is the channels, and moves it to the front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "framework/data/tables/numbers.h"
#include "framework/device/shape.h"

namespace dtrain {

// kAuto takes the first or the last axis, whichever has 1, 3 or 4 entries.  It takes the last one for images only, which
// have several rows and columns: [D, 1, 1] is a vector, as Caffe stores it.
enum class ImageLayout { kAuto, kChw, kHwc };

inline ImageLayout LayoutOf(const std::string& name) {
  return name == "chw" ? ImageLayout::kChw : name == "hwc" ? ImageLayout::kHwc : ImageLayout::kAuto;
}

// Returns true if the last axis of samples of this shape is the channels; std::nullopt if kAuto does not tell: neither
// the first nor the last axis has 1, 3 or 4 entries, or both have, or the last one has and the sample is no image.
inline std::optional<bool> ChannelsLast(const Shape& sample, ImageLayout layout) {
  if (sample.rank() != 3 || layout == ImageLayout::kChw) return false;
  if (layout == ImageLayout::kHwc) return true;
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3 || extent == 4; };
  const bool first = is_channels(sample[0]), last = is_channels(sample[2]);
  const bool image = sample[0] > 1 && sample[1] > 1;  // if the channels are last
  if (first == last || (last && !image)) return std::nullopt;
  return last;
}

// Converts [N, pixels, channels] to [N, channels, pixels].
template <class T>
std::vector<T> ChannelsToFront(const std::vector<T>& from, int64_t pixels, int64_t channels) {
  std::vector<T> to(from.size());
  const auto each = static_cast<size_t>(pixels * channels);
  for (size_t begin = 0; begin < from.size(); begin += each) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        to[begin + static_cast<size_t>(c * pixels + p)] =
            from[begin + static_cast<size_t>(p * channels + c)];
      }
    }
  }
  return to;
}

inline Numbers ChannelsToFront(const Numbers& from, int64_t pixels, int64_t channels) {
  return std::visit(
      [&](const auto& values) { return Numbers(ChannelsToFront(values, pixels, channels)); }, from);
}

}  // namespace dtrain
