// Keeps images in a device's memory as bytes.  Batches are made there: cropped, mirrored and normalised to the same
// bits as by ImageSet::Fill; only one SampleView per sample is copied to the device.
//
// A device registers the kernel for it, like the kernels of layers (nn/kernel.h):
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

// Describes one row of a batch.
struct SampleView {
  int64_t sample = 0;
  View view;
};

// Holds one split.  The pointers are to device memory.
struct StoredImages {
  const uint8_t* images = nullptr;   // [samples, channels, rows, columns]
  const uint16_t* labels = nullptr;  // [samples]
  const float* values = nullptr;     // [channels, 256]: the normalised value for each pixel value
  int64_t samples = 0;
  int64_t channels = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Submits work to the device that writes data[r] and labels[r], as views[r] says, for 0 <= r < samples.  All memory is
// the device's.
using ViewImages = void (*)(const Device& device, const StoredImages& from, const SampleView* views,
                            int64_t samples, float* data, int32_t* labels);

// Copies all splits of `set`, which must outlive the result, to the device.  Returns null if they take more than a
// quarter of the device's free memory, since the net needs the rest.
std::unique_ptr<ResidentSamples> KeepImages(const ImageSet& set, const Device& device);

bool AddViewImages(DeviceKind device, ViewImages view_images);

}  // namespace dtrain

#define DTRAIN_VIEW_IMAGES(device, view_images)                 \
  [[maybe_unused]] static const bool view_images##_registered = \
      ::dtrain::AddViewImages(device, view_images)
