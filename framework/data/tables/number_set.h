// NumberSet holds samples of numbers of any shape, labelled with a class or with target numbers; they are kept in
// memory and normalised when a batch is filled.  The loaders of npy, hdf5 and csv make it, unless the samples are
// images of bytes with classes: these become an ImageSet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/channel_moments.h"
#include "framework/data/tables/numbers.h"

namespace dtrain {

// Holds one split. samples: [n, spec.image_shape] row-major; either classes [n] or targets [n, spec.target_shape].
struct LabelledNumbers {
  Numbers samples;
  std::vector<uint16_t> classes;
  std::vector<double> targets;
  std::optional<ChannelMoments> of_all = {};  // moments of all samples, if not all are here
};

// Computes the mean and deviation of each entry of the first axis (a channel of images, a column of a table), from
// these samples in order or, if given, from the moments of all.  A constant one has deviation 1; returns which these
// are.
std::vector<int64_t> MeasureNumbers(const LabelledNumbers& numbers, ImageSetSpec& spec);

// The same of each entry of a target.
std::vector<int64_t> MeasureTargets(const std::vector<double>& targets, ImageSetSpec& spec);

class NumberSet : public Dataset {
 public:
  // REQUIRES: spec.numbers.
  NumberSet(const ImageSetSpec& spec, LabelledNumbers train, LabelledNumbers test);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t classes() const override { return spec_.classes; }
  std::span<const uint16_t> ClassOf(Split split) const override { return numbers(split).classes; }
  const ImageSetSpec* image_info() const override { return &spec_; }
  const DataNotes* notes() const override { return notes_ ? &*notes_ : nullptr; }
  void Note(DataNotes notes) { notes_ = std::move(notes); }  // of a user's own files
  void KeepTargets() override {
    spec_.target_mean = 0;
    spec_.target_deviation = 1;
  }
  void Normalise(const ImageSetSpec& like) override {
    spec_.mean = like.mean;
    spec_.deviation = like.deviation;
    spec_.target_mean = like.target_mean;
    spec_.target_deviation = like.target_deviation;
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::string ManifestHash() const override { return Hashes().all; }
  DataHashes Hashes() const override;

 private:
  const LabelledNumbers& numbers(Split split) const { return splits_[static_cast<size_t>(split)]; }

  ImageSetSpec spec_;
  std::optional<DataNotes> notes_;
  std::array<LabelledNumbers, 3> splits_;  // in the order of Split; validation is empty
};

}  // namespace dtrain
