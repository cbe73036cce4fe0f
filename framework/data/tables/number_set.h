// NumberSet: samples that are numbers of any shape, with a class or numbers to come near to as the label; kept in
// memory and normalised when a batch is filled.  What the loaders of npy, hdf5 and csv make, unless the samples
// are images of bytes with classes: these are an ImageSet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/channel_moments.h"

namespace dtrain {

// One split.  samples: [n, spec.image_shape] row-major; either classes [n] or targets [n, spec.target_shape].
struct LabelledNumbers {
  std::vector<float> samples;
  std::vector<uint16_t> classes;
  std::vector<float> targets;
  std::optional<ChannelMoments> of_all = {};  // of more samples than these
};

// The mean and deviation of each entry of the first axis (a channel of images, a column of a table), in the order of
// the samples; of all samples where these are the first of them.  A column that is the same everywhere has deviation 1.
void MeasureNumbers(const LabelledNumbers& numbers, ImageSetSpec& spec);

class NumberSet : public Dataset {
 public:
  // `spec.numbers` is set.
  NumberSet(const ImageSetSpec& spec, LabelledNumbers train, LabelledNumbers test);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t classes() const override { return spec_.classes; }
  const ImageSetSpec* image_facts() const override { return &spec_; }
  void Normalise(const ImageSetSpec& like) override {
    spec_.mean = like.mean;
    spec_.deviation = like.deviation;
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::string ManifestHash() const override { return Hashes().all; }
  DataHashes Hashes() const override;

 private:
  const LabelledNumbers& numbers(Split split) const { return splits_[static_cast<size_t>(split)]; }

  ImageSetSpec spec_;
  std::array<LabelledNumbers, 3> splits_;  // in the order of Split; none for validation
};

}  // namespace dtrain
