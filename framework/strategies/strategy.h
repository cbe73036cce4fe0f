// Strategy: one way to exchange gradients, selected by name in the config.
//
// A new family of strategies is a new folder of actors.  A strategy of an existing family is one
// file with
//   DTRAIN_STRATEGY("allreduce", AllReduce, "help");
// It declares what it counts in counters().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/config/reader.h"
#include "framework/core/registry.h"
#include "framework/strategies/actor.h"
#include "framework/strategies/counts.h"
#include "framework/strategies/placement.h"

namespace dtrain {

// T(M): seconds of an all-reduce of M bytes over all workers.  T(0) is the time to start one.
using ReduceTime = std::function<double(int64_t bytes)>;

// Describes the layers' gradients of the model, one range per layer, in the order in which the
// backward pass completes them.  Ranges are contiguous and ascending.
struct LayerGradients {
  std::vector<Range> ranges;
  int64_t total() const { return ranges.empty() ? 0 : ranges.back().end; }

  // For strategies that plan by time: ready[i] is the time at which all workers have the gradient
  // of layer i, in seconds since the step began, not descending; reduce_seconds is T(M).
  std::vector<double> ready = {};
  ReduceTime reduce_seconds = {};
  bool timed() const { return !ready.empty(); }
};

// Holds the arguments from which an actor is made.
struct ActorSetup {
  Placement placement;
  int64_t size = 0;            // elements of the arena
  std::vector<Range> buckets;  // of the execution plan
  bool whole_update = false;   // the solver needs the whole gradient at once (clipping)
  CompressConfig compress = {};
  bool may_fail = false;  // workers may die, so actors that wait for others use timeouts
};

// Lists where a strategy keeps the model, which a run evaluates and saves at a boundary.
enum class ModelPlace {
  kWorkers,   // every worker has all of it, and all have the same bits
  kShards,    // each server has a part
  kReplicas,  // several masters have weights of their own for all of it; the model is their mean, by
              // Actor::MasterShare
};

// Says what kind of protocol a strategy is.  The code around strategies asks for this, not for a name.
struct StrategyTraits {
  // True: all workers take the same steps, each on its share of a global batch, and know at which of them the run
  // pauses.  False: each takes mini-batches of its own, in its own time.
  bool lockstep = false;
  // True: workers sum vectors over all of them (Effects::Reduce), as the run's `collective` does it.  False: actors send
  // messages.
  bool collectives = false;
  ModelPlace model = ModelPlace::kShards;
  // True if all workers compute each step with the same weights.
  bool equal_weights() const { return lockstep && model != ModelPlace::kReplicas; }
  // True if it is the gradients that are summed: every worker has the model.
  bool sums_gradients() const { return model == ModelPlace::kWorkers; }
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Reads the strategy's keys in section `strategy`; `name` and `record` belong to the run
  // (setup/run_config.h).
  virtual void Configure(config::Reader& reader) = 0;

  virtual StrategyTraits traits() const = 0;
  // True if the strategy can be used with this compressor.
  virtual bool Takes(const Compressor&) const { return false; }
  // Returns all actors of a run with so many workers, and their ranks.
  virtual Placement Place(int workers) const { return {.workers = workers}; }

  // Boundaries at which the protocol does something (Actor::OnQuiescent), besides those of the run.
  // 0: none.
  struct Boundaries {
    int64_t every_epochs = 0;
    int64_t after_steps = 0;  // once, after so many global batches of the run
  };
  virtual Boundaries boundaries(const CompressConfig&) const { return {}; }

  // Returns why a run cannot continue when a worker or a node dies ("it waits for every worker");
  // "" if it can.
  virtual std::string StopsAtDeath() const { return "it waits for every worker"; }

  // Describes an error in the strategy's keys for a given number of workers.
  struct KeyError {
    std::string key, what, hint;
    bool warning = false;              // a warning only; the run continues
    std::vector<std::string> by = {};  // other keys that the message depends on (Reader::AddError)
  };
  virtual std::vector<KeyError> Check(int /*workers*/) const { return {}; }

  // True if a run may be resumed with another value of this key, because the saved state of the
  // actors does not depend on it.
  virtual bool MayChange(std::string_view /*key*/) const { return false; }
  // Returns the factor of the learning rate for one worker's gradient, with so many workers.  A
  // compressor's residual is scaled with it when a run resumes with another number of workers.
  virtual double RateOfGradient(int /*workers*/) const { return 1; }

  // True if Buckets depends on LayerGradients::ready, which then has to be measured before the run.
  // Without these times nothing is merged.
  virtual bool PlansByTime() const { return false; }
  // Describes the rule that Buckets uses (" by rule published"); "" if there is only one.
  virtual std::string PlanningRule() const { return ""; }
  // True if all-reduces start while the backward pass is running.
  virtual bool Overlaps() const { return true; }
  // Returns the ranges that are reduced together.  They depend on declaration order and bytes,
  // never on the order of arrival.
  virtual std::vector<Range> Buckets(const LayerGradients& layer_gradients) const = 0;

  virtual std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const = 0;

  // Declares what the actors count (Actor::Report), in the order of the summary.
  virtual std::vector<StrategyCounter> counters() const { return {}; }
};

struct StrategyEntry {
  std::function<std::unique_ptr<Strategy>()> make;
  std::string help;
};

using StrategyRegistry = Registry<StrategyEntry>;

// Return the names of the compressors that a strategy can be used with, and of the strategies that
// a compressor can be used with.
std::vector<std::string> CompressorsOf(const Strategy& strategy);
std::vector<std::string> StrategiesOf(const std::string& compressor);
// Returns the names of the strategies that continue, with default keys, when a worker dies.
std::vector<std::string> StrategiesThatOutliveWorkers();

}  // namespace dtrain

#define DTRAIN_STRATEGY(name, Class, help_text)                    \
  [[maybe_unused]] static const bool Class##_strategy_registered = \
      ::dtrain::StrategyRegistry::Add(                             \
          name, {[] { return std::unique_ptr<::dtrain::Strategy>(new Class); }, help_text})
