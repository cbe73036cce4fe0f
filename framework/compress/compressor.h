// Compressor: which entries of a vector are sent now; the rest stays where it is (error feedback)
// and is added to what comes later.
//
// Or, of a cast (cast.h): all are sent, in fewer bits, and what rounding leaves stays.
//
// A compressor is one folder of framework/compress/, with its class and one line:
//
//   DTRAIN_COMPRESSOR("topk", TopK, "help");
//
// It chooses, and moves nothing: Effects::Compress (framework/strategies/actor.h) moves the chosen
// entries out of one vector into another, so that sent + kept = accumulated, to the bit, whatever
// is chosen.  How dense a choice is, is an argument of each, since a strategy may change it while
// the run goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/layout.h"
#include "framework/core/random.h"
#include "framework/core/registry.h"
#include "framework/core/short_float.h"

namespace dtrain {

struct CompressConfig;
class DeviceValues;

// One choice among the n values of a unit (a layer, a bucket, the whole model), in passes over
// them: whoever asks goes through the unit in parts, and looks at the network between two of them.
//
//   while (selection->WantsLook()) for (each part, in order) selection->Look(...);
//   for (each part, in order) selection->Choose(...);
//
// The values are the same in every pass.
class Selection {
 public:
  virtual ~Selection() = default;
  // Another pass over all values is wanted; false once it is known what to choose.
  virtual bool WantsLook() = 0;
  // `values`: those of `part`, which counts from the unit's begin.
  virtual void Look(const float* values, Range part) = 0;
  // Writes the chosen ones' places in the unit, ascending, and returns how many there are.  What a
  // unit's parts have together is at most Compressor::EntriesMost.
  virtual int64_t Choose(const float* values, Range part, int32_t* chosen) = 0;
  // The same passes over all values where they lie in a device's memory (device_values.h).  These copy
  // them to the machine's; who chooses among few of them overrides both.
  virtual void LookOn(DeviceValues& values);
  virtual int64_t ChooseOn(DeviceValues& values, int32_t* chosen);
  // Where the unit's next selection may begin (SelectionKey::threshold), once it is known what to
  // choose; 0: nothing is handed on.
  virtual float Threshold() const { return 0; }
};

// What a choice depends on beside the values: the same key, the same choice.
struct SelectionKey {
  uint64_t seed = 1;  // of the run; with the next three, of the lots that are drawn
  int actor = 0;
  int64_t call = 0;  // how often this actor has selected from the unit
  // The unit's first element, below 2^31, so that other buckets change no lot of a layer.
  int64_t unit = 0;
  // What the last selection of this unit by this actor handed on; 0: nothing, or none is known.
  // Who hosts actors of a compressor that carries_threshold() keeps one float for each unit, as part
  // of the actor's state; without it the selection begins with statistics of its own.
  float threshold = 0;
};

class Compressor {
 public:
  // What is chosen from at a time.
  enum class Scope { kLayer, kBucket, kModel };

  virtual ~Compressor() = default;

  // Its own keys in section `compress`.
  virtual void Configure(config::Reader& reader, CompressConfig& config) = 0;
  virtual Scope default_scope() const { return Scope::kBucket; }
  // The strategy decides on the density of each selection: there is no key `density`.
  virtual bool density_by_strategy() const { return false; }

  // Workers of a synchronous strategy keep the solver's momentum themselves, before the selection
  // (CompressConfig::momentum).
  virtual bool corrects_momentum() const { return false; }

  // 0 < density < 1.  NaN and infinity may be among the values; they count as the largest.
  virtual std::unique_ptr<Selection> Select(int64_t n, double density,
                                            const SelectionKey& key) const = 0;
  // Selections hand a threshold on from call to call (SelectionKey::threshold).
  virtual bool carries_threshold() const { return false; }
  // No selection has more entries.
  virtual int64_t EntriesMost(int64_t n, double density) const = 0;
  // Passes over the values that a selection takes, as a rule: what simulated time is charged for.
  virtual int passes() const = 0;
  // k: about as many are chosen, or exactly.
  virtual int64_t Asked(int64_t n, double density) const;
  // How values travel; a cast (cast.h) sends all of them in 16 bits.
  virtual Wire wire() const { return Wire::kFp32; }
  bool rounds() const { return wire() != Wire::kFp32; }
};

// Section `compress`, as read and checked.
struct CompressConfig {
  std::string name;                              // "" for none
  std::shared_ptr<const Compressor> compressor;  // null for none
  double density = 1;  // of every selection, where the strategy does not decide on it
  std::vector<double> density_warmup;  // of those in the first epochs
  int64_t dense_steps = 0;             // first steps in which the whole gradient is sent
  Compressor::Scope scope = Compressor::Scope::kBucket;
  std::string exchange =
      "gather";  // how sums over the workers carry a selection (sparse_collective.h)
  // That each worker applies to its own gradients, in the place of the solver: what is added to the
  // residual is the velocity v = momentum v + g, and where an entry is sent v begins anew.  (Lin et al.,
  // "Deep Gradient Compression", ICLR 2018, section 3.2: momentum correction and factor masking.)
  double momentum = 0;
  // Before that it shortens its gradient to clip_norm / sqrt(workers), the solver's clip_norm, where it is longer
  // (section 3.2, local gradient clipping); 0: it does not.
  double clip_norm = 0;
  // Of compressors whose density the strategy decides on (gdtopk).
  std::string policy;         // "contribution", "speed_gap"
  bool flush_epochs = false;  // residuals are sent whole at the end of each epoch

  bool on() const { return compressor != nullptr; }
  bool selects() const { return on() && density < 1; }  // behind the warm-up
  Wire wire() const { return on() ? compressor->wire() : Wire::kFp32; }
  bool rounds() const { return on() && compressor->rounds(); }  // a cast: it sends all
  // How the gradient is cut into buckets shows in the bits of its sum, also with collective `ordered`.  Who
  // rounds a sum of a cast goes by the bucket's size, and gtopk and oktopk keep the largest of each.
  bool FollowsBuckets() const;
  // Whether to gather so many workers' selections takes more bytes than to sum whole vectors: a rank receives
  // 2 (W - 1) density n numbers, or 2 (W - 1)/W n.  Each then fills its selection up with zeros and the
  // collective sums that.  gtopk and oktopk choose once more while they sum, and never do so.
  bool PaysDense(double of_density, int workers) const {
    return on() && !rounds() && exchange == "gather" && of_density * workers >= 1;
  }
  // What is sent of a gradient, in which epoch and, counted from the run's begin, which step.
  double DensityAt(int64_t epoch) const;
  double DensityAt(int64_t epoch, int64_t step) const;
};

struct CompressorEntry {
  std::function<std::unique_ptr<Compressor>()> make;
  std::string help;
};

using CompressorRegistry = Registry<CompressorEntry>;

// Mistakes are noted in the reader's document (config::Reader).
CompressConfig ReadCompressConfig(config::Reader reader);

// The keys beside `name` of a compressor: the common ones and its own.
void ReadCompressorKeys(config::Reader& reader, Compressor& compressor, CompressConfig& config);

// The parts of `range` that are chosen from one at a time, ascending.  `layers` and `buckets` each
// cover the arena without gaps.
std::vector<Range> UnitsOf(Compressor::Scope scope, Range range, std::span<const Range> layers,
                           std::span<const Range> buckets);

// density * n, rounded down or up: whole products stay what they are, whatever the binary fraction
// of the density is (0.29 * 100 is 29).
int64_t FloorOfShare(double density, int64_t n);
int64_t CeilOfShare(double density, int64_t n);

// k of most publications: max(1, floor(density * n)).
int64_t EntriesAsked(double density, int64_t n);

// The lots of a selection.
Random LotsOf(const SelectionKey& key);

// The choice among values that are at hand as a whole.  `threshold`: gets what the selection hands
// on.
std::vector<int32_t> SelectFrom(const Compressor& compressor, std::span<const float> values,
                                double density, const SelectionKey& key,
                                float* threshold = nullptr);
// The same where they are in a device's memory.
std::vector<int32_t> SelectFrom(const Compressor& compressor, DeviceValues& values, double density,
                                const SelectionKey& key, float* threshold = nullptr);

}  // namespace dtrain

#define DTRAIN_COMPRESSOR(name, Class, help_text)                    \
  [[maybe_unused]] static const bool Class##_compressor_registered = \
      ::dtrain::CompressorRegistry::Add(                             \
          name, {[] { return std::unique_ptr<::dtrain::Compressor>(new Class); }, help_text})
