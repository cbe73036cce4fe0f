// Images kept in a device's memory as the bytes that they are.  A batch is then made there: cut, mirrored
// and normalised, to the bits that ImageSet::Fill writes; up goes one SampleView a sample.
//
// A device registers what makes it, with the kernels of layers (nn/kernel.h):
//
//   DTRAIN_VIEW_IMAGES(DeviceKind::kCuda, ViewImagesCuda);    // framework/kernels/<device>/
#pragma once

#include <cstdint>
#include <memory>

#include "framework/data/images/crop_flip.h"
#include "framework/device/device.h"

namespace dtrain {

class ImageSet;
class ResidentSamples;

// A row of a batch.
struct SampleView {
  int64_t sample = 0;
  View view;
};

// One split.  The pointers lead into the device's memory.
struct StoredImages {
  const uint8_t* images = nullptr;   // [samples, channels, rows, columns]
  const uint16_t* labels = nullptr;  // [samples]
  const float* values = nullptr;     // [channels, 256]: what a pixel of each value becomes
  int64_t channels = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Asks the device to write data[r] and labels[r], as views[r] says, for 0 <= r < samples.  All memory is
// the device's.
using ViewImages = void (*)(const Device& device, const StoredImages& from, const SampleView* views,
                            int64_t samples, float* data, int32_t* labels);

// All splits of `set`, which outlives it.  Null where they take more than a quarter of the memory that the
// device has free: the net will want the rest.
std::unique_ptr<ResidentSamples> KeepImages(const ImageSet& set, const Device& device);

bool AddViewImages(DeviceKind device, ViewImages view_images);

}  // namespace dtrain

#define DTRAIN_VIEW_IMAGES(device, view_images)                 \
  [[maybe_unused]] static const bool view_images##_registered = \
      ::dtrain::AddViewImages(device, view_images)
