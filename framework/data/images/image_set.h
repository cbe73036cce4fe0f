// ImageSet holds grey or colour images of one size with one label each.  They are kept in memory as bytes, and
// normalised and, in training, augmented (crop_flip.h) when a batch is filled.  The IDX and CIFAR loaders, folders of
// images and the procedural sets make it. resident_images.h keeps one in a device's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/crop_flip.h"
#include "framework/data/images/image_file.h"

namespace dtrain {

// Holds one split.  `images` is [samples, C, H, W], row-major, and `labels` [samples], each below the class count.
struct LabelledImages {
  std::vector<uint8_t> images;
  std::vector<uint16_t> labels;
};

// Holds a number for all channels, or one for each.
class PerChannel {
 public:
  PerChannel(double all) : values_{all} {}
  PerChannel(std::initializer_list<double> each) : values_(each) {}
  explicit PerChannel(std::vector<double> each) : values_(std::move(each)) {}
  double operator[](int64_t channel) const { return values_[values_.size() == 1 ? 0 : channel]; }
  const std::vector<double>& values() const { return values_; }
  std::vector<float> floats() const { return {values_.begin(), values_.end()}; }

 private:
  std::vector<double> values_;
};

inline constexpr int64_t kClassesMost = 65536;  // labels are 16 bits wide

// ImageSetSpec holds the properties common to all images of a set, which convert images to numbers and predictions to
// names.
struct ImageSetSpec {
  Shape image_shape;    // [C, H, W]
  int64_t classes = 0;  // at most kClassesMost
  // Of pixel / 255: a pixel p becomes (p / 255 - mean) / deviation.  For pixels both are floats, as in PyTorch.
  PerChannel mean = 0;
  PerChannel deviation = 1;
  std::vector<std::string> class_names = {};  // of every class; empty: numbers
  Fit fit = Fit::kNone;                       // for images of other sizes
  Orientation orientation = Orientation::kExif;
  // Samples are numbers, not pixels (data/tables/number_set.h): x becomes (x - mean) / deviation, the shape may have
  // fewer axes, and a `channel` is an entry of the first.  Without classes the label is numbers of target_shape.
  bool numbers = false;
  Shape target_shape = {};
  // A target t becomes (t - target_mean) / target_deviation, and the answer of a model is turned back.  Of each entry of
  // target_shape; 0 and 1 if the model's loss takes targets as they are.
  PerChannel target_mean = 0;
  PerChannel target_deviation = 1;
  // The names of a sample's numbers and of the label, from a table with column names.  Empty: unknown.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  bool decimal_comma = false;  // the table's numbers have one
  // ToText omits these three.  They are true if mean or deviation was measured on the training split, since no key set
  // it.
  bool mean_measured = false;
  bool deviation_measured = false;
  // True if samples were decoded from image files as `fit` and `orientation` say; other sets keep the defaults of
  // these, which apply to image files given to a trained model.
  bool from_image_files = false;

  // Returns the factor of Batch::loss_unit.  Several targets of different deviations have no common unit.
  double loss_unit() const {
    const std::vector<double>& deviations = target_deviation.values();
    const bool one = std::ranges::all_of(deviations, [&](double d) { return d == deviations[0]; });
    return one ? deviations[0] * deviations[0] : 1;
  }

  bool scales_targets() const {
    return std::ranges::any_of(target_mean.values(), [](double mean) { return mean != 0; }) ||
           std::ranges::any_of(target_deviation.values(), [](double d) { return d != 1; });
  }
};

// Convert to JSON, which a checkpoint keeps with the weights, and back.  ImageSetSpecFromText throws DataError, naming
// `origin`, if `text` is wrong.
std::string ToText(const ImageSetSpec& spec);
ImageSetSpec ImageSetSpecFromText(const std::string& text, const std::string& origin);

// Measures mean and deviation of each channel over all pixels, with exact sums, so that the order does not matter.
void MeasurePixels(const LabelledImages& images, ImageSetSpec& spec);

// Returns the fields: "data" f32 [C, H, W] and "label" i32 [], or f32 if the samples have no classes.
std::vector<FieldSpec> ImageFields(const ImageSetSpec& spec);

class ImageSet : public Dataset {
 public:
  // `augment` applies to the training split; `seed` keys its random numbers.
  ImageSet(const ImageSetSpec& spec, LabelledImages train, LabelledImages test,
           const CropFlip& augment = {}, uint64_t seed = 0, LabelledImages validation = {});

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override;
  int64_t classes() const override { return spec_.classes; }
  bool has_validation() const override { return size(Split::kValidation) > 0; }
  std::span<const uint16_t> ClassOf(Split split) const override { return images(split).labels; }
  const ImageSetSpec* image_info() const override { return &spec_; }
  const DataNotes* notes() const override { return notes_ ? &*notes_ : nullptr; }
  void Note(DataNotes notes) { notes_ = std::move(notes); }  // of a user's own files
  void Normalise(const ImageSetSpec& like) override;
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::unique_ptr<ResidentSamples> KeepOn(const Device& device) const override;
  std::string ManifestHash() const override { return Hashes().all; }
  DataHashes Hashes() const override;

  const LabelledImages& images(Split split) const;
  const Shape& image_shape() const { return spec_.image_shape; }
  // Returns the normalised value for each pixel value, channel by channel.
  const std::vector<std::array<float, 256>>& values() const { return normalised_; }
  // Returns the view of sample `index` in an epoch.
  View ViewOf(Split split, uint64_t epoch, int64_t index) const;

 private:
  void CopyImage(const View& view, const uint8_t* from, float* to) const;

  ImageSetSpec spec_;
  std::optional<DataNotes> notes_;
  std::array<LabelledImages, 3> splits_;  // in the order of Split
  CropFlip augment_;
  uint64_t seed_;
  std::vector<std::array<float, 256>> normalised_;
};

}  // namespace dtrain
