// randk selects k entries of each unit at random, without replacement; k = max(1, floor(density * n)).  Comparing it
// with others shows the value of error feedback.
//
// It is Rand_k of Shi et al. (arXiv 1911.08772 and its code), without scaling values by n / k, since the residual is
// sent later.  The random numbers are counter-based: the same key draws the same places.
//
// `seeds: different`: every worker draws its own places.  Zeros are not sent; if only zeros were drawn, the largest
// entry is sent.  `seeds: same`: all workers draw the same places at the same call, and send the entries there, zeros
// too.  Positions are sent as for any selection: this option is for comparisons, and saves no bytes.
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "framework/compress/device_values.h"
#include "framework/compress/sampled_largest.h"

namespace dtrain {
namespace {

// Sorts places below n that are spread evenly, in O(count): first by parts of [0, n), as many as there are places, and then
// within the parts, which have one place each on average.
void SortSpread(std::span<int32_t> places, int64_t n) {
  const auto parts = static_cast<uint64_t>(places.size());
  const auto part_of = [&](int32_t place) {
    return static_cast<size_t>(static_cast<uint64_t>(place) * parts / static_cast<uint64_t>(n));
  };
  std::vector<int32_t> begins(places.size() + 1);
  for (const int32_t place : places) ++begins[part_of(place) + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  const std::vector<int32_t> unsorted(places.begin(), places.end());
  for (const int32_t place : unsorted)
    places[static_cast<size_t>(begins[part_of(place)]++)] = place;
  for (size_t i = 1; i < places.size(); ++i) {
    const int32_t place = places[i];
    size_t at = i;
    for (; at > 0 && places[at - 1] > place; --at) places[at] = places[at - 1];
    places[at] = place;
  }
}

// Returns the first `count` different random numbers of [0, n), ascending; count <= n/2, so that few draws are wasted.
std::vector<int32_t> DrawPlaces(int64_t n, int64_t count, const Random& random) {
  std::vector<int32_t> places;
  places.reserve(static_cast<size_t>(count));
  uint64_t draw = 0;
  while (std::ssize(places) < count) {
    const auto known = std::ssize(places);
    for (int64_t left = count - known; left > 0; --left) {
      places.push_back(static_cast<int32_t>(random.Below(draw++, static_cast<uint64_t>(n))));
    }
    SortSpread(std::span(places).subspan(static_cast<size_t>(known)), n);
    std::inplace_merge(places.begin(), places.begin() + known, places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  return places;
}

class RandomSelection : public Selection {
 public:
  // `zeros`: zeros are chosen like other values.
  RandomSelection(int64_t n, int64_t k, const SelectionKey& key, bool zeros)
      : n_(n),
        left_out_(2 * k > n),
        zeros_(zeros),
        places_(DrawPlaces(n, left_out_ ? n - k : k, RandomOf(key))) {}

  // One pass checks the drawn places; if all are zero, further passes find the largest entry.
  bool WantsLook() override {
    if (zeros_) return false;
    if (largest_) return largest_->WantsLook();
    if (!looking_) return looking_ = true;
    next_ = 0;
    if (any_) return false;
    largest_ = SelectLargest(n_, 1);
    return largest_->WantsLook();
  }

  void Look(const float* values, Range part) override {
    if (largest_) return largest_->Look(values, part);
    ForDrawn(part, [&](int64_t place) { any_ |= values[place - part.begin] != 0; });
  }

  int64_t Choose(const float* values, Range part, int32_t* chosen) override {
    if (largest_) return largest_->Choose(values, part, chosen);
    int64_t count = 0;
    ForDrawn(part, [&](int64_t place) {
      if (zeros_ || values[place - part.begin] != 0) {
        chosen[count++] = static_cast<int32_t>(place);
      }
    });
    return count;
  }

  // The device reads the drawn places alone, unless they are the ones that are left out.
  void LookOn(DeviceValues& values) override {
    if (largest_) return largest_->LookOn(values);
    if (left_out_) return Selection::LookOn(values);
    const std::span<const float> there = values.At(places_);
    there_.assign(there.begin(), there.end());
    any_ = std::any_of(there.begin(), there.end(), [](float value) { return value != 0; });
  }

  int64_t ChooseOn(DeviceValues& values, int32_t* chosen) override {
    if (largest_) return largest_->ChooseOn(values, chosen);
    if (left_out_) return Selection::ChooseOn(values, chosen);
    int64_t count = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (zeros_ || there_[i] != 0) chosen[count++] = places_[i];
    }
    return count;
  }

 private:
  template <class Work>
  void ForDrawn(Range part, Work work) {
    const auto ends = [&] { return next_ == places_.size() || places_[next_] >= part.end; };
    if (!left_out_) {
      for (; !ends(); ++next_) work(places_[next_]);
      return;
    }
    for (int64_t place = part.begin; place < part.end; ++place) {
      if (next_ < places_.size() && places_[next_] == place) {
        ++next_;
      } else {
        work(place);
      }
    }
  }

  const int64_t n_;
  const bool left_out_;  // the drawn places are left out, the others are chosen
  const bool zeros_;
  const std::vector<int32_t> places_;
  size_t next_ = 0;
  bool looking_ = false, any_ = false;
  std::vector<float> there_;  // the values at places_, found by a device
  std::unique_ptr<Selection> largest_;
};

class RandK : public Compressor {
 public:
  void Configure(config::Reader& reader, CompressConfig&) override {
    const std::string seeds = reader.String("seeds", "different")
                                  .OneOf({"different", "same"})
                                  .Help(
                                      "different: each worker draws its own entries; same: all "
                                      "draw the same");
    same_ = seeds == "same";
  }
  std::unique_ptr<Selection> Select(int64_t n, double density,
                                    const SelectionKey& key) const override {
    SelectionKey own = key;
    if (same_) own.actor = 0;
    return std::make_unique<RandomSelection>(n, EntriesAsked(density, n), own, same_);
  }
  int64_t EntriesMost(int64_t n, double density) const override { return EntriesAsked(density, n); }
  int passes() const override { return 1; }

 private:
  bool same_ = false;
};

DTRAIN_COMPRESSOR("randk", RandK, "entries of each unit drawn at random");

}  // namespace
}  // namespace dtrain
