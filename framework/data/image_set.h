// ImageSet: grey or colour images of one size with one label each, kept in memory as bytes and
// normalised when a batch is filled.  What the IDX loader and the procedural sets make.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "framework/data/dataset.h"

namespace dtrain {

// One split.  images: [samples, C, H, W] row-major; labels: [samples], each below the class count.
struct LabelledImages {
  std::vector<uint8_t> images;
  std::vector<uint8_t> labels;
};

// What all its images share.
struct ImageSetSpec {
  Shape image_shape;    // [C, H, W]
  int64_t classes = 0;  // at most 256
  float mean = 0;       // of pixel / 255: a pixel p becomes (p / 255 - mean) / deviation
  float deviation = 1;
};

// "data" f32 [C, H, W] and "label" i32 [].
std::vector<FieldSpec> ImageFields(const Shape& image_shape);

class ImageSet : public Dataset {
 public:
  ImageSet(const ImageSetSpec& spec, LabelledImages train, LabelledImages test);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override;
  int64_t classes() const override { return spec_.classes; }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::string ManifestHash() const override;

  const LabelledImages& images(Split split) const;

 private:
  ImageSetSpec spec_;
  LabelledImages train_;
  LabelledImages test_;
  std::array<float, 256> normalised_;  // of each pixel value
};

}  // namespace dtrain
