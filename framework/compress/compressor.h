// A Compressor selects the entries of a vector that are sent now; the others stay in the residual (error feedback) and
// are added to later gradients.
//
// A cast (cast.h) sends all entries in fewer bits, and keeps the rounding error in the residual.  A coder (coding.h)
// sends words that stand for the whole gradient.
//
// A compressor is one folder of framework/compress/ with its class and one line:
//
//   DTRAIN_COMPRESSOR("topk", TopK, "help");
//
// It only chooses: Effects::Compress (framework/strategies/actor.h) moves the chosen entries from one vector to
// another, so that sent + kept = accumulated, to the bit, for any choice.  The density is an argument of each
// selection, since a strategy may change it during the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/layout.h"
#include "framework/core/random.h"
#include "framework/core/registry.h"
#include "framework/core/short_float.h"

namespace dtrain {

struct CompressConfig;
class Coder;
class DeviceValues;

// One choice among the n values of a unit (a layer, a bucket, the whole model), in passes over them: the caller goes
// through the unit in parts, so that it can poll the network between two parts.
//
//   while (selection->WantsLook()) for (each part, in order) selection->Look(...);
//   for (each part, in order) selection->Choose(...);
//
// The values are the same in every pass.
class Selection {
 public:
  virtual ~Selection() = default;
  // True if another pass over all values is needed; false once the choice is known.
  virtual bool WantsLook() = 0;
  // Reads `values`, those of `part`, which counts from the unit's begin.
  virtual void Look(const float* values, Range part) = 0;
  // Writes the places in the unit of the chosen entries, ascending, and returns their number.  All parts of a unit
  // together have at most Compressor::EntriesMost.
  virtual int64_t Choose(const float* values, Range part, int32_t* chosen) = 0;
  // The same passes over all values in a device's memory (device_values.h).  The default versions copy the values to
  // host memory; a selection that needs only few of them overrides both.
  virtual void LookOn(DeviceValues& values);
  virtual int64_t ChooseOn(DeviceValues& values, int32_t* chosen);
  // Returns the threshold from which the unit's next selection may begin (SelectionKey::threshold), once the choice is
  // known; 0: none.
  virtual float Threshold() const { return 0; }
};

// The inputs of a choice besides the values: the same key gives the same choice.
struct SelectionKey {
  uint64_t seed = 1;  // the run's seed; this and the next three key the random numbers
  int actor = 0;
  int64_t call = 0;  // earlier selections of this actor from the unit
  // The unit's first element, below 2^31.  A unit is a layer or a bucket (CompressConfig::scope); by its place, not its
  // number, a layer draws the same random numbers whatever the buckets are.
  int64_t unit = 0;
  // Holds the Threshold() of this actor's last selection from the unit; 0: none.  The host of an actor whose compressor
  // carries_threshold() keeps one float per unit, as part of the actor's state; without it the selection starts from
  // its own statistics.
  float threshold = 0;
};

class Compressor {
 public:
  // Scope is the unit of a selection.
  enum class Scope { kLayer, kBucket, kModel };

  virtual ~Compressor() = default;

  // Reads its own keys in section `compress`.
  virtual void Configure(config::Reader& reader, CompressConfig& config) = 0;
  virtual Scope default_scope() const { return Scope::kBucket; }
  // True if the strategy decides the density of each selection: then there is no key `density`.
  virtual bool density_by_strategy() const { return false; }
  // True if a run may be resumed with another value of this key of section `compress`, because no state depends on it.
  virtual bool MayChange(std::string_view /*key*/) const { return true; }

  // True if workers of a synchronous strategy keep the solver's momentum themselves, before the selection
  // (CompressConfig::momentum).
  virtual bool corrects_momentum() const { return false; }

  // Begins a selection.  0 < density < 1.  The values may contain NaN and infinity; they count as the largest.
  virtual std::unique_ptr<Selection> Select(int64_t n, double density,
                                            const SelectionKey& key) const = 0;
  // True if a selection passes a threshold on to the next one (SelectionKey::threshold).
  virtual bool carries_threshold() const { return false; }
  // Returns an upper bound of a selection's entries.
  virtual int64_t EntriesMost(int64_t n, double density) const = 0;
  // Returns the usual number of passes over the values, for the simulator's cost.
  virtual int passes() const = 0;
  // Returns the keys that change the time of its work and have not their default: "loop=published".
  virtual std::string cost_keys() const { return ""; }
  // Returns k: the number of entries to choose, exactly or about.
  virtual int64_t Asked(int64_t n, double density) const;
  // Returns the format of sent values; a cast (cast.h) sends all of them in 16 bits.
  virtual Wire wire() const { return Wire::kFp32; }
  bool rounds() const { return wire() != Wire::kFp32; }
  virtual const Coder* coder() const { return nullptr; }  // this, if it is one
  bool sends_entries() const { return !rounds() && coder() == nullptr; }
};

// Holds the checked content of section `compress`.
struct CompressConfig {
  std::string name;                              // "" for none
  std::shared_ptr<const Compressor> compressor;  // null for none
  double density = 1;                  // of every selection, unless the strategy decides it
  std::vector<double> density_warmup;  // densities of the first epochs
  int64_t dense_steps = 0;             // number of first steps that send the whole gradient
  Compressor::Scope scope = Compressor::Scope::kBucket;
  // Names the way in which an all-reduce sums selections (sparse_collective.h).
  std::string exchange = "gather";
  // Each worker applies this momentum to its own gradients, in the place of the solver: the velocity v = momentum v + g
  // is added to the residual, and v is reset to 0 where an entry is sent.  (Lin et al., "Deep Gradient Compression",
  // ICLR 2018, section 3.2: momentum correction and factor masking.)
  double momentum = 0;
  // The solver's clip_norm, for local gradient clipping (section 3.2): before momentum, each worker scales its gradient
  // to norm clip_norm / sqrt(workers) if it is longer; 0: no clipping.
  double clip_norm = 0;
  // These are for compressors whose density the strategy decides (gdtopk).
  std::string policy;         // "contribution", "speed_gap"
  bool flush_epochs = false;  // send the whole residual at the end of each epoch

  bool on() const { return compressor != nullptr; }
  bool selects() const { return on() && density < 1; }  // after the warm-up
  const Coder* coder() const { return on() ? compressor->coder() : nullptr; }
  // True if it is neither a cast nor a coder.
  bool sends_entries() const { return on() && compressor->sends_entries(); }
  Wire wire() const { return on() ? compressor->wire() : Wire::kFp32; }
  bool rounds() const { return on() && compressor->rounds(); }  // a cast, which sends all values
  // True if the division of the gradient into buckets affects the bits of its sum, even with collective `ordered`: a
  // bucket's size decides which rank rounds the sum of a cast, and gtopk and oktopk keep the largest entries of each
  // bucket.
  bool FollowsBuckets() const;
  // True if gathering the workers' selections takes more bytes than summing whole vectors: a rank receives 2 (W - 1)
  // density n numbers, or 2 (W - 1)/W n.  Then each worker fills its selection up with zeros and the collective sums
  // dense vectors.  gtopk and oktopk, which select again while they sum, never do so.
  bool PaysDense(double of_density, int workers) const {
    return sends_entries() && exchange == "gather" && of_density * workers >= 1;
  }
  // Returns its name in a file of measured costs (CompressCost::compressor); "" for none.
  std::string cost_name() const {
    const std::string keys = on() ? compressor->cost_keys() : "";
    return keys.empty() ? name : name + ":" + keys;
  }
  // Returns the density in an epoch and, for the second one, a step counted from the run's begin.
  double DensityAt(int64_t epoch) const;
  double DensityAt(int64_t epoch, int64_t step) const;
};

struct CompressorEntry {
  std::function<std::unique_ptr<Compressor>()> make;
  std::string help;
};

using CompressorRegistry = Registry<CompressorEntry>;

// Reads section `compress`.  Errors are added to the reader's document (config::Reader).
CompressConfig ReadCompressConfig(config::Reader reader);

// Reads a compressor's keys besides `name`: the common ones and its own.
void ReadCompressorKeys(config::Reader& reader, Compressor& compressor, CompressConfig& config);

// Returns the units of `range`, ascending.  `layers` and `buckets` each cover the arena without gaps.
std::vector<Range> UnitsOf(Compressor::Scope scope, Range range, std::span<const Range> layers,
                           std::span<const Range> buckets);

// Return density * n, rounded down or up; whole products are exact even if the density has no exact binary fraction
// (0.29 * 100 is 29).
int64_t FloorOfShare(double density, int64_t n);
int64_t CeilOfShare(double density, int64_t n);

// Returns k as most publications define it: max(1, floor(density * n)).
int64_t EntriesAsked(double density, int64_t n);

// Returns the random numbers of a selection.
Random RandomOf(const SelectionKey& key);

// Runs a selection on values that are all in host memory; returns the chosen places.  `threshold` receives
// Selection::Threshold.
std::vector<int32_t> SelectFrom(const Compressor& compressor, std::span<const float> values,
                                double density, const SelectionKey& key,
                                float* threshold = nullptr);
// Does the same for values in a device's memory.
std::vector<int32_t> SelectFrom(const Compressor& compressor, DeviceValues& values, double density,
                                const SelectionKey& key, float* threshold = nullptr);

}  // namespace dtrain

#define DTRAIN_COMPRESSOR(name, Class, help_text)                    \
  [[maybe_unused]] static const bool Class##_compressor_registered = \
      ::dtrain::CompressorRegistry::Add(                             \
          name, {[] { return std::unique_ptr<::dtrain::Compressor>(new Class); }, help_text})
