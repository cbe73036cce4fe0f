// GDTopK selects approximately the largest entries of a layer, by a threshold from a sample.
//
// As in the published code of GSSP (its selection is DGC's: Lin, Han, Mao, Wang, Dally, "Deep
// Gradient Compression", ICLR 2018, section 3 and code), with
//   target = ceil(n * density)
// 1. a sample of ceil(n * sample_ratio) values, drawn with replacement; of all where n is at most
//    ceil(2 / density);
// 2. threshold = the smallest of its ceil(sample * density) largest magnitudes;
// 3. count = values of at least the threshold; up to 10 times: more than 1.3 target: exactly the
//    `target` largest; fewer than 0.8 target: threshold *= 0.8; else enough;
// 4. of those the first `target`, by place.
// Differences: draws are counter-based (core/random.h), so that the same step of the same worker chooses the same
// entries in every run, and zeros are not sent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain {

class SampledSelection : public Selection {
 public:
  SampledSelection(int64_t n, double density, double sample_ratio, const SelectionKey& key);

  bool WantsLook() override;
  void Look(const float* values, Range part) override;
  int64_t Choose(const float* values, Range part, int32_t* chosen) override;
  void LookOn(DeviceValues& values) override;
  int64_t ChooseOn(DeviceValues& values, int32_t* chosen) override;

 private:
  enum class Stage { kBegin, kSampling, kCounting, kExact, kKnown };

  void DrawPlaces(int64_t n, int64_t draws, const SelectionKey& key);
  void EndSampling();
  void EndCounting();

  const int64_t n_;
  const double density_;
  const int64_t target_;
  Stage stage_ = Stage::kBegin;
  std::vector<int32_t> places_;  // places of the sample, ascending
  size_t next_place_ = 0;
  std::vector<uint32_t> sample_;  // magnitudes
  uint32_t threshold_ = 0;        // a magnitude
  int64_t count_ = 0;             // values that reach the threshold
  int rounds_ = 0;
  int64_t left_;                      // entries that may still be chosen
  std::vector<int32_t> there_;        // the places of what reaches the threshold, found by a device
  std::unique_ptr<Selection> exact_;  // used if too many values reach the threshold
};

}  // namespace dtrain
