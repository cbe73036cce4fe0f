// Keys of `data:` that sets of one's own images share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/data/images/image_set.h"

namespace dtrain {

// mean, deviation, crop and flip.
class PixelKeys {
 public:
  void Configure(config::Reader& reader);
  // Whether the numbers fit the channels; notes mistakes.
  void Check(config::Reader& reader, const ImageSetSpec& spec) const;
  // mean and deviation alone, of samples that are no pixels.
  void ConfigureNumbers(config::Reader& reader);
  // Gives `spec` the mean and deviation: those of the config, else measured on the training images, or by
  // `measure`, which writes both.
  void Fill(const LabelledImages& train, ImageSetSpec& spec) const;
  void Fill(const std::function<void()>& measure, ImageSetSpec& spec) const;
  // Whether one of them is measured.
  bool measures() const { return mean_.empty() || deviation_.empty(); }
  const CropFlip& augment() const { return augment_; }

 private:
  std::vector<double> mean_, deviation_;
  CropFlip augment_;
};

// Threads for `wanted`; 0: as many as this process has cores.
int DecodingThreads(int64_t wanted);

}  // namespace dtrain
