// Declares the keys of `data:` that all sets of the user's own images share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/data/images/image_set.h"

namespace dtrain {

// Reads the keys mean, deviation, crop and flip.
class PixelKeys {
 public:
  void Configure(config::Reader& reader);
  // Checks that the numbers fit the channels; reports errors.
  void Check(config::Reader& reader, const ImageSetSpec& spec) const;
  // Reads only mean and deviation, for samples that are no images.
  void ConfigureNumbers(config::Reader& reader);
  // Sets `spec`'s mean and deviation: those of the config, else measured on the training images, or by `measure`, which
  // must set both.
  void Fill(const LabelledImages& train, ImageSetSpec& spec) const;
  void Fill(const std::function<void()>& measure, ImageSetSpec& spec) const;
  // True if one of them is measured.
  bool measures() const { return mean_.empty() || deviation_.empty(); }
  const CropFlip& augment() const { return augment_; }

 private:
  std::vector<double> mean_, deviation_;
  CropFlip augment_;
};

// Returns `wanted` threads; for 0, as many as the process has cores, of which a container's quota counts.
int DecodingThreads(int64_t wanted);

}  // namespace dtrain
