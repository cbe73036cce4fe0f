// Strategy: one way to exchange gradients, as the config names it.
//
// A new family is a new folder of actors; a strategy that joins a family is one file with
//   DTRAIN_STRATEGY("allreduce", AllReduce, "help");
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
#include "framework/strategies/placement.h"

namespace dtrain {

// T(M): seconds that the sum of so many bytes over all workers takes; T(0): to start one.
using ReduceTime = std::function<double(int64_t bytes)>;

// What a strategy may know of the model: the gradient pieces in the order the backward pass
// finishes them (one a layer), contiguous and ascending.
struct GradientPieces {
  std::vector<Range> ranges;
  int64_t total() const { return ranges.empty() ? 0 : ranges.back().end; }

  // Where a strategy plans by time: when in a step each piece is there at all workers, in seconds
  // since the step began, not descending; and T(M).
  std::vector<double> ready = {};
  ReduceTime reduce_seconds = {};
  bool timed() const { return !ready.empty(); }
};

// What an actor is made from.
struct ActorSetup {
  Placement placement;
  int64_t size = 0;            // of the arena, elements
  std::vector<Range> buckets;  // of the plan
  bool whole_update = false;   // the solver needs the whole gradient at once (clipping)
  CompressConfig compress = {};
  bool may_fail = false;  // workers may die: who waits for others looks after them
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Its keys in section `strategy`; `name` and `record` are the run's (runtime/setup/run_config.h).
  virtual void Configure(config::Reader& reader) = 0;

  // All workers end the same step together, on equal weights; else each takes its own mini-batches.
  virtual bool synchronous() const = 0;
  // Whether its actors compress, with this one.
  virtual bool Takes(const Compressor&) const { return false; }
  // Who takes part beside so many workers, and where.
  virtual Placement Place(int workers) const { return {.workers = workers}; }

  // Boundaries at which the protocol does something (Actor::OnQuiescent), besides those of the run; 0: none.
  struct Boundaries {
    int64_t every_epochs = 0;
    int64_t after_steps = 0;  // once: global batches from the start of the run
  };
  virtual Boundaries boundaries(const CompressConfig&) const { return {}; }

  // Why a run cannot go on when a worker or a node dies: "it waits for every worker"; "" where it can.
  virtual std::string StopsAtDeath() const { return "it waits for every worker"; }

  // What is wrong with its keys for so many workers.
  struct Mistake {
    std::string key, what, hint;
    bool warning = false;              // it goes on all the same
    std::vector<std::string> by = {};  // its other keys that the message goes by (Reader::Mistake)
  };
  virtual std::vector<Mistake> Check(int /*workers*/) const { return {}; }

  // Whether a run may be resumed with another value of this key: what actors have saved means the
  // same then.
  virtual bool MayChange(std::string_view /*key*/) const { return false; }
  // What part of the schedule's rate one worker's gradient takes, of so many workers.  What a
  // compressor keeps back is due at it, also when the number of workers changes.
  virtual double RateOfGradient(int /*workers*/) const { return 1; }

  // Whether Buckets depends on the times of `pieces`, which somebody then has to measure before the
  // run; without them nothing is merged.
  virtual bool PlansByTime() const { return false; }
  // By which of its rules, " by rule published"; "" where it has one only.
  virtual std::string PlanningRule() const { return ""; }
  // Whether sums begin while the backward pass goes on.
  virtual bool Overlaps() const { return true; }
  // The ranges that are sent together, by declaration order and bytes, never by arrival time.
  virtual std::vector<Range> Buckets(const GradientPieces& pieces) const = 0;

  virtual std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const = 0;
};

struct StrategyEntry {
  std::function<std::unique_ptr<Strategy>()> make;
  std::string help;
};

using StrategyRegistry = Registry<StrategyEntry>;

// The table of which strategy takes which compressor: by names of the registries.
std::vector<std::string> CompressorsOf(const Strategy& strategy);
std::vector<std::string> StrategiesOf(const std::string& compressor);
// Those that go on when a worker dies, at their default keys.
std::vector<std::string> StrategiesThatOutliveWorkers();

}  // namespace dtrain

#define DTRAIN_STRATEGY(name, Class, help_text)                    \
  [[maybe_unused]] static const bool Class##_strategy_registered = \
      ::dtrain::StrategyRegistry::Add(                             \
          name, {[] { return std::unique_ptr<::dtrain::Strategy>(new Class); }, help_text})
