// ImageSet: grey or colour images of one size with one label each, kept in memory as bytes and
// normalised, in training augmented, when a batch is filled.  What the IDX and CIFAR loaders and
// the procedural sets make.  Augmentation is in crop_flip.cc.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "framework/data/dataset.h"

namespace dtrain {

// One split.  images: [samples, C, H, W] row-major; labels: [samples], each below the class count.
struct LabelledImages {
  std::vector<uint8_t> images;
  std::vector<uint8_t> labels;
};

// A number for all channels, or one for each.
class PerChannel {
 public:
  PerChannel(float all) : values_{all} {}
  PerChannel(std::initializer_list<float> each) : values_(each) {}
  float operator[](int64_t channel) const { return values_[values_.size() == 1 ? 0 : channel]; }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
};

// What all its images share.
struct ImageSetSpec {
  Shape image_shape;    // [C, H, W]
  int64_t classes = 0;  // at most 256
  PerChannel mean = 0;  // of pixel / 255: a pixel p becomes (p / 255 - mean) / deviation
  PerChannel deviation = 1;
};

// Random crop and mirroring of training images, the augmentation usual for CIFAR (He, Zhang, Ren,
// Sun, arXiv:1512.03385, section 4.2).
//
// Where an image is cut and whether it is mirrored is a pure function of (seed, epoch, sample):
// which worker asks, in which batch and how often does not matter.
struct CropFlip {
  int padding = 0;    // black pixels around the image, before it is cut to its own size again
  bool flip = false;  // mirror every other image, left to right
};

// How one image is seen: pixel (y, x) of the view is pixel (y + down, x + right) of the image, and
// black outside of it; then the view is mirrored or not.  The default is the image as it is.
struct View {
  int64_t down = 0;
  int64_t right = 0;
  bool mirrored = false;
  friend bool operator==(const View&, const View&) = default;
};

// `down` and `right` are uniform over [-padding, padding], `mirrored` is true for half of all.
View DrawView(const CropFlip& augment, uint64_t seed, uint64_t epoch, int64_t sample);

// Writes the view of one channel, [rows, columns] row-major, with each pixel p as values[p].
void CopyView(const View& view, const uint8_t* channel, int64_t rows, int64_t columns,
              std::span<const float, 256> values, float* to);

// "data" f32 [C, H, W] and "label" i32 [].
std::vector<FieldSpec> ImageFields(const ImageSetSpec& spec);

class ImageSet : public Dataset {
 public:
  // `augment` is for the training split, by `seed`.
  ImageSet(const ImageSetSpec& spec, LabelledImages train, LabelledImages test,
           const CropFlip& augment = {}, uint64_t seed = 0);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override;
  int64_t classes() const override { return spec_.classes; }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::string ManifestHash() const override;

  const LabelledImages& images(Split split) const;

 private:
  void CopyImage(const View& view, const uint8_t* from, float* to) const;

  ImageSetSpec spec_;
  LabelledImages train_;
  LabelledImages test_;
  CropFlip augment_;
  uint64_t seed_;
  std::vector<std::array<float, 256>> normalised_;  // of each channel, of each pixel value
};

}  // namespace dtrain
