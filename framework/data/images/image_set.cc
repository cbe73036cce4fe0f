#include "framework/data/images/image_set.h"

#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/data/images/resident_images.h"

namespace dtrain {

std::vector<FieldSpec> ImageFields(const ImageSetSpec& spec) {
  if (spec.numbers && spec.classes == 0) {
    return {{"data", DType::kF32, spec.image_shape}, {"label", DType::kF32, spec.target_shape}};
  }
  return {{"data", DType::kF32, spec.image_shape}, {"label", DType::kI32, Shape{}, spec.classes}};
}

ImageSet::ImageSet(const ImageSetSpec& spec, LabelledImages train, LabelledImages test,
                   const CropFlip& augment, uint64_t seed, LabelledImages validation)
    : spec_(spec),
      splits_{std::move(train), std::move(validation), std::move(test)},
      augment_(augment),
      seed_(seed),
      normalised_(static_cast<size_t>(spec.image_shape[0])) {
  for (const LabelledImages& split : splits_) {
    DT_CHECK(split.images.size() == split.labels.size() * spec.image_shape.count())
        << split.images.size() << " bytes for " << split.labels.size() << " images";
  }
  ImageSet::Normalise(spec);
}

void ImageSet::Normalise(const ImageSetSpec& like) {
  for (const PerChannel* numbers : {&like.mean, &like.deviation}) {
    DT_CHECK(numbers->values().size() == 1 || numbers->values().size() == normalised_.size())
        << numbers->values().size() << " numbers for " << normalised_.size() << " channels";
  }
  spec_.mean = like.mean;
  spec_.deviation = like.deviation;
  // The roundings are those of PyTorch's ToTensor and Normalize, so that both see the same bits.
  for (size_t c = 0; c < normalised_.size(); ++c) {
    const auto mean = static_cast<float>(spec_.mean[c]);
    const auto deviation = static_cast<float>(spec_.deviation[c]);
    float pixel = 0;
    for (float& value : normalised_[c]) {
      value = (pixel / 255.0f - mean) / deviation;
      ++pixel;
    }
  }
}

const LabelledImages& ImageSet::images(Split split) const {
  return splits_[static_cast<size_t>(split)];
}

int64_t ImageSet::size(Split split) const {
  return static_cast<int64_t>(images(split).labels.size());
}

std::vector<FieldSpec> ImageSet::fields() const { return ImageFields(spec_); }

void ImageSet::CopyImage(const View& view, const uint8_t* from, float* to) const {
  const int64_t rows = spec_.image_shape[1];
  const int64_t columns = spec_.image_shape[2];
  for (const std::array<float, 256>& values : normalised_) {
    CopyView(view, from, rows, columns, values, to);
    from += rows * columns;
    to += rows * columns;
  }
}

View ImageSet::ViewOf(Split split, uint64_t epoch, int64_t index) const {
  DT_CHECK(index >= 0 && index < size(split)) << "sample " << index << " of " << size(split);
  const bool augmented = split == Split::kTrain && epoch != kNoEpoch;
  return augmented ? DrawView(augment_, seed_, epoch, index) : View{};
}

std::unique_ptr<ResidentSamples> ImageSet::KeepOn(const Device& device) const {
  return KeepImages(*this, device);
}

void ImageSet::Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                    Batch& batch) const {
  DT_CHECK(static_cast<int64_t>(indices.size()) == batch.samples)
      << indices.size() << " indices for " << batch.samples << " rows";
  const LabelledImages& source = images(split);
  const int64_t pixels = spec_.image_shape.count();
  float* to = batch.fields[0].f32();
  int32_t* labels = batch.fields[1].i32();
  for (size_t row = 0; row < indices.size(); ++row, to += pixels) {
    const int64_t index = indices[row];
    CopyImage(ViewOf(split, epoch, index), source.images.data() + index * pixels, to);
    labels[row] = source.labels[index];
  }
}

DataHashes ImageSet::Hashes() const {
  const std::string shared = fmt::format(
      "images {} classes {} mean {} deviation {}\n", spec_.image_shape.ToString(), spec_.classes,
      fmt::join(spec_.mean.floats(), " "), fmt::join(spec_.deviation.floats(), " "));
  constexpr Split kOrder[] = {Split::kTrain, Split::kTest, Split::kValidation};
  return HashSplits(shared, kOrder, [this](Split split, Sha256& hash) {
    const LabelledImages& part = images(split);
    if (split == Split::kValidation && part.labels.empty()) return;
    hash.Update(fmt::format("samples {}\n", part.labels.size()));
    hash.Update(part.images.data(), part.images.size());
    hash.Update(part.labels.data(), part.labels.size() * sizeof(part.labels[0]));
  });
}

}  // namespace dtrain
