// GradientStatistics: statistics of a worker's gradients, and of the error of compressing them, in
// every N-th step.
//
// They only observe the exchange: no bit of the run changes, and simulated time does not include
// them.  All calls come from the thread that runs the driver.
//
// Each unit (a layer, a bucket, the model) that entries are selected from gives one record.  It
// describes g, the unit's gradient, and u, the vector that entries are selected from: gradient plus
// residual, or velocity plus residual if workers keep the momentum.  With C(u) the selected
// entries, it also has the error ||u - C(u)||^2 / ||u||^2 and the error of the k largest entries,
// which is the smallest that k entries can have.  (Shi, Chu, Cheung, See, "Understanding Top-k
// Sparsification in Distributed Deep Learning", arXiv 1911.08772, sections 3 and 4.)  A step that
// is sent uncompressed gives one record, of g.
//
// The vectors are read in host memory.  The k largest entries are found at once, not in slices, so
// a recorded step takes longer: some 0.1 s for 10 million entries.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {

// Holds a histogram of values by magnitude.  The bins are powers of two.
struct MagnitudeHistogram {
  static constexpr int kBins = 256;
  static constexpr int kExponentBias = 127;

  // Bin b, 0 < b < 255, counts values with 2^(b - 127) <= |x| < 2^(b - 126).  Bin 0 counts zeros
  // and values below 2^-126, bin 255 NaN and infinity.
  std::array<int64_t, kBins> negative{};
  std::array<int64_t, kBins> positive{};
  double squares = 0;  // sum of x^2, added in the order of the values

  void Add(const float* values, int64_t n);
};

// Describes the entries that a compressor selected from a unit.
struct GradientSelection {
  MagnitudeHistogram from;  // of u
  double density = 1;       // requested density
  int64_t asked = 0;        // k, the requested number of entries
  int64_t selected = 0;     // number of entries in C(u)
  // ||u - C(u)||^2 / ||u||^2 of the selected and of the k largest entries; NaN if u is zero.
  double error = 0;
  double error_of_largest = 0;
};

struct GradientRecord {
  int64_t step = 0;  // the worker's step, counted from 1
  int worker = 0;
  Range range;  // the unit's part of the arena
  MagnitudeHistogram gradient;

  std::optional<GradientSelection> selection;  // absent if the gradient was sent uncompressed
};

class GradientStatistics {
 public:
  // Receives the records.
  class Sink {
   public:
    virtual ~Sink() = default;
    // The run begins after `steps` steps of the worker.  After a resume, records of later steps are
    // written again.
    virtual void BeginBehind(int64_t steps) = 0;
    virtual void Write(const GradientRecord& record) = 0;
  };

  // Records every `every`-th step of worker `worker`.  `sink` outlives the statistics.
  GradientStatistics(int64_t every, Sink& sink, int worker = 0)
      : every_(every), sink_(sink), worker_(worker) {}

  int worker() const { return worker_; }
  // Call it before the first step: the worker has taken `steps` steps already.
  void BeginBehind(int64_t steps);
  // True if the current step is recorded.
  bool due() const { return (steps_ + 1) % every_ == 0; }
  void EndStep() { ++steps_; }

  // --- calls in a step that is due.  Pointers are to the first value of the range or slice.
  // Adds gradients that are sent uncompressed.  The ranges of a step ascend without gaps; `last` is
  // true for the last one.
  void SentWhole(Range range, const float* gradient, bool last);
  // For each unit to select from, call BeginUnit before anything is taken from `from`,
  void BeginUnit(Range unit, const float* gradient, const float* from);
  // then Kept for each slice, with the n values after `taken` of them were taken (set to zero),
  void Kept(const float* kept, int64_t n, int64_t taken);
  // then EndUnit.
  void EndUnit(double density, int64_t asked);

 private:
  double ErrorOfLargest(int64_t k);

  const int64_t every_;
  Sink& sink_;
  const int worker_;
  int64_t steps_ = 0;  // steps that have ended
  GradientRecord record_;
  double kept_squares_ = 0;
  std::vector<float> magnitudes_;  // |u| of the current unit
};

// Records a range of a worker's gradient, which has `size` elements, that is sent as it is, if its statistics are due.
// `statistics` is null if they are not requested.
inline void StudyWhole(GradientStatistics* statistics, int worker, Range range, int64_t size,
                       const float* gradient) {
  if (statistics == nullptr || worker != statistics->worker() || !statistics->due()) return;
  statistics->SentWhole(range, gradient + range.begin, range.end == size);
}

}  // namespace dtrain
