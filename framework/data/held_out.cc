// Implements HoldOut: training samples become the validation split, or the test split of a set without one.
//
// Each class gives its share.  Sample i of a class of n, in an order drawn at random, stands at (i + 1/2) / n of a line
// from 0 to 1, the last one at 1, and the splits are parts of the line: test, validation, training.  So the sizes of the
// splits do not depend on the classes, each class gives its share rounded to a sample, and the training split has a
// sample of every class while it has as many samples as there are classes.  Samples without classes count as one class.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"

namespace dtrain {
namespace {

struct Shares {
  double validation = 0;
  double test = 0;
};

struct Sizes {
  int64_t train = 0;
  int64_t validation = 0;
  int64_t test = 0;  // 0: the set has its own test split
};

Sizes SizesOf(int64_t samples, const Shares& shares) {
  const auto part = [samples](double share) -> int64_t {
    if (share == 0) return 0;
    return std::max<int64_t>(1, std::llround(static_cast<double>(samples) * share));
  };
  const int64_t validation = part(shares.validation);
  const int64_t test = part(shares.test);
  return {samples - validation - test, validation, test};
}

// Returns the training samples in the order in which splits take them.
std::vector<int64_t> Drawn(const Dataset& whole) {
  const auto samples = static_cast<size_t>(whole.size(Split::kTrain));
  const std::span<const uint16_t> classes = whole.ClassOf(Split::kTrain);
  const Random random(0, Purpose::kHeldOut);
  struct Place {
    double at;      // on the line from 0 to 1
    uint32_t bits;  // decides between equal places; then the sample does
    int64_t sample;
    auto operator<=>(const Place&) const = default;
  };
  std::map<uint16_t, std::vector<Place>> by_class;
  for (size_t i = 0; i < samples; ++i) {
    by_class[classes.empty() ? 0 : classes[i]].push_back(
        {0, random.Bits(i), static_cast<int64_t>(i)});
  }
  std::vector<Place> line;
  for (auto& [number, places] : by_class) {
    std::ranges::sort(places);
    for (size_t i = 0; i < places.size(); ++i) {
      // The last one of a class is trained on, even if it is the only one.
      const bool last = i + 1 == places.size();
      places[i].at = last ? 1 : (static_cast<double>(i) + 0.5) / static_cast<double>(places.size());
    }
    line.insert(line.end(), places.begin(), places.end());
  }
  std::ranges::sort(line);
  std::vector<int64_t> drawn;
  drawn.reserve(samples);
  for (const Place& place : line) drawn.push_back(place.sample);
  return drawn;
}

class HeldOut : public WrappedDataset {
 public:
  HeldOut(std::unique_ptr<Dataset> whole, const Shares& shares)
      : WrappedDataset(std::move(whole)), shares_(shares) {
    const int64_t samples = this->whole().size(Split::kTrain);
    DT_CHECK(samples < int64_t{1} << 32) << samples;
    const Sizes sizes = SizesOf(samples, shares);
    if (sizes.train < 1) {  // broken images may have been left out
      throw DataError(
          fmt::format("{} of {} would be held out: none is left to train on",
                      sizes.validation + sizes.test, Counted(samples, "training sample")),
          "take more data");
    }
    const std::vector<int64_t> drawn = Drawn(this->whole());
    const std::span<const uint16_t> classes = this->whole().ClassOf(Split::kTrain);
    const auto take = [&](Split split, int64_t begin, int64_t count) {
      std::vector<int64_t>& indices = indices_[static_cast<size_t>(split)];
      indices.assign(drawn.begin() + begin, drawn.begin() + begin + count);
      std::ranges::sort(indices);
      if (classes.empty()) return;
      for (const int64_t index : indices) {
        classes_[static_cast<size_t>(split)].push_back(classes[static_cast<size_t>(index)]);
      }
    };
    take(Split::kTest, 0, sizes.test);
    take(Split::kValidation, sizes.test, sizes.validation);
    take(Split::kTrain, sizes.test + sizes.validation, sizes.train);
  }

  int64_t size(Split split) const override {
    return IsPart(split) ? static_cast<int64_t>(IndicesOf(split).size()) : whole().size(split);
  }
  bool has_validation() const override {
    return shares_.validation > 0 || whole().has_validation();
  }
  bool held_out() const override { return true; }
  std::span<const uint16_t> ClassOf(Split split) const override {
    if (!IsPart(split)) return whole().ClassOf(split);
    return classes_[static_cast<size_t>(split)];
  }
  int64_t Terms(Split split, int64_t index) const override {
    return whole().Terms(SourceOf(split), IsPart(split) ? IndicesOf(split)[index] : index);
  }
  std::vector<SampleLength> Lengths(Split split) const override {
    const std::vector<SampleLength> lengths = whole().Lengths(SourceOf(split));
    if (!IsPart(split) || lengths.empty()) return lengths;
    std::vector<SampleLength> of_part;
    for (const int64_t index : IndicesOf(split)) of_part.push_back(lengths[index]);
    return of_part;
  }
  void SampleShapes(Split split, std::span<const int64_t> indices,
                    std::span<Shape> shapes) const override {
    whole().SampleShapes(SourceOf(split), InWhole(split, indices), shapes);
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    whole().Fill(SourceOf(split), InWhole(split, indices), EpochOf(split, epoch), batch);
  }
  std::unique_ptr<ResidentSamples> KeepOn(const Device& device) const override {
    auto samples = whole().KeepOn(device);
    return samples == nullptr ? nullptr : std::make_unique<Resident>(*this, std::move(samples));
  }
  // Every part depends on the training samples, their classes and the shares only.
  DataHashes Hashes() const override {
    const std::string text =
        fmt::format(" held out{} {} {}", whole().ClassOf(Split::kTrain).empty() ? "" : " by class",
                    shares_.validation, shares_.test);
    DataHashes hashes = whole().Hashes();
    const std::string parts = DerivedHash(hashes[Split::kTrain], text);
    hashes.all = DerivedHash(hashes.all, text);
    for (const Split split : kSplits) {
      if (IsPart(split)) hashes[split] = parts;
    }
    return hashes;
  }

 private:
  class Resident : public ResidentSamples {
   public:
    Resident(const HeldOut& set, std::unique_ptr<ResidentSamples> samples)
        : set_(set), samples_(std::move(samples)) {}
    void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
              Batch& batch) override {
      samples_->Fill(set_.SourceOf(split), set_.InWhole(split, indices), EpochOf(split, epoch),
                     batch);
    }

   private:
    const HeldOut& set_;
    const std::unique_ptr<ResidentSamples> samples_;
  };

  // True if the split is made of the whole set's training samples.
  bool IsPart(Split split) const { return split == Split::kTrain || !IndicesOf(split).empty(); }
  const std::vector<int64_t>& IndicesOf(Split split) const {
    return indices_[static_cast<size_t>(split)];
  }
  Split SourceOf(Split split) const { return IsPart(split) ? Split::kTrain : split; }
  // Held-out samples are not augmented.
  static uint64_t EpochOf(Split split, uint64_t epoch) {
    return split == Split::kTrain ? epoch : kNoEpoch;
  }
  // Returns the indices in the whole set, valid until this thread's next call: the step loop must not allocate.
  std::span<const int64_t> InWhole(Split split, std::span<const int64_t> indices) const {
    if (!IsPart(split)) return indices;
    thread_local std::vector<int64_t> in_whole;
    in_whole.clear();
    for (const int64_t index : indices) in_whole.push_back(IndicesOf(split)[index]);
    return in_whole;
  }

  const Shares shares_;
  std::array<std::vector<int64_t>, 3> indices_;   // in the order of Split
  std::array<std::vector<uint16_t>, 3> classes_;  // of these samples; empty without classes
};

class HeldOutSource : public DatasetSource {
 public:
  HeldOutSource(std::shared_ptr<const DatasetSource> whole, double validation)
      : whole_(std::move(whole)), shares_{validation, whole_->test_share()} {}

  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t size(Split split) const override {
    const Sizes sizes = SizesOf(whole_->size(Split::kTrain), shares_);
    if (split == Split::kTrain) return sizes.train;
    const int64_t held = split == Split::kTest ? sizes.test : sizes.validation;
    return held > 0 ? held : whole_->size(split);
  }
  int64_t classes() const override { return whole_->classes(); }
  bool has_validation() const override {
    return shares_.validation > 0 || whole_->has_validation();
  }
  bool is_read() const override { return whole_->is_read(); }
  std::vector<RemoteFile> files() const override { return whole_->files(); }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override {
    return std::make_unique<HeldOut>(whole_->Load(folder, seed), shares_);
  }

 private:
  const std::shared_ptr<const DatasetSource> whole_;
  const Shares shares_;
};

}  // namespace

std::shared_ptr<const DatasetSource> HoldOut(std::shared_ptr<const DatasetSource> source,
                                             double validation) {
  if (validation == 0 && source->test_share() == 0) return source;
  return std::make_shared<HeldOutSource>(std::move(source), validation);
}

}  // namespace dtrain
