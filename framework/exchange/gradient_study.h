// GradientStudy: what a worker's gradients are like, and what a selection leaves of them, every N-th step.
//
// It looks on while the exchange works: it changes no bit, and nobody is charged for it in virtual time.
// Where there is none, nothing is looked at.  One thread calls it: the one that drives the exchange.
//
// A unit (a layer, a bucket, the model) that entries are selected from makes one record: g, its gradient;
// u, what is selected from (the gradient and what was kept back; the velocity instead of the gradient
// where workers keep the momentum); and, C(u) being what was taken, ||u - C(u)||^2 / ||u||^2 beside that
// of the k largest entries, which is the least that k entries can leave.  (Shi, Chu, Cheung, See,
// "Understanding Top-k Sparsification in Distributed Deep Learning", arXiv 1911.08772, sections 3 and 4.)
// A step that is sent whole makes one record of g.
//
// Numbers are read where the CPU has them.  The k largest are found in one go, not in slices: a step that
// is studied takes longer, some 0.1 s for 10 million entries.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {

// How many values there are of each magnitude, by powers of two.
struct MagnitudeHistogram {
  static constexpr int kBins = 256;
  static constexpr int kExponentBias = 127;

  // Of bin b, for 0 < b < 255: 2^(b - 127) <= |x| < 2^(b - 126).  Bin 0: zeros, and what is below
  // 2^-126; bin 255: NaN and infinity.
  std::array<int64_t, kBins> negative{};
  std::array<int64_t, kBins> positive{};
  double squares = 0;  // sum of x^2, added in the order of the values

  void Add(const float* values, int64_t n);
};

// What a compressor took of a unit.
struct GradientSelection {
  MagnitudeHistogram from;  // u
  double density = 1;       // asked for
  int64_t asked = 0;        // k
  int64_t selected = 0;     // entries that were taken
  // ||u - C(u)||^2 / ||u||^2 of what was taken, and of the k largest; NaN where u is zero.
  double error = 0;
  double error_of_largest = 0;
};

struct GradientRecord {
  int64_t step = 0;  // of the worker, counted from 1
  int worker = 0;
  Range range;  // of the arena
  MagnitudeHistogram gradient;

  std::optional<GradientSelection> selection;  // none: all was sent
};

class GradientStudy {
 public:
  // Who gets the records.
  class Sink {
   public:
    virtual ~Sink() = default;
    // The worker has taken so many steps before; records of later ones are to come (again).
    virtual void BeginBehind(int64_t steps) = 0;
    virtual void Write(const GradientRecord& record) = 0;
  };

  // Of worker `worker`; `sink` outlives it.
  GradientStudy(int64_t every, Sink& sink, int worker = 0)
      : every_(every), sink_(sink), worker_(worker) {}

  int worker() const { return worker_; }
  // Before the first step.
  void BeginBehind(int64_t steps);
  // Of the step that is on its way: it is looked at.
  bool due() const { return (steps_ + 1) % every_ == 0; }
  void EndStep() { ++steps_; }

  // --- in a step that is due.  Pointers are to the first value of the range, or slice.
  // These gradients are sent as they are.  Ranges of a step ascend, without gaps; `last`: all are there.
  void SentWhole(Range range, const float* gradient, bool last);
  // A unit is selected from: first this, where `from` is still whole, ...
  void BeginUnit(Range unit, const float* gradient, const float* from);
  // ... then slice by slice what is kept of it, and how many entries were taken, ...
  void Kept(const float* kept, int64_t n, int64_t taken);
  // ... and the end.
  void EndUnit(double density, int64_t asked);

 private:
  double ErrorOfLargest(int64_t k);

  const int64_t every_;
  Sink& sink_;
  const int worker_;
  int64_t steps_ = 0;  // that have ended
  GradientRecord record_;
  double kept_squares_ = 0;
  std::vector<float> magnitudes_;  // of the unit
};

}  // namespace dtrain
