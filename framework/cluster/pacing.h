// Pacing: makes the compute of a real step take as long as a scenario says (step_seconds, slowdown, jitter), without
// computing more.
//
// Only events are delayed: the gradient of layer l is announced no earlier than
//
//   start + fraction(l) x factor x max(measured, step_seconds)
//
// and the step ends no earlier than the same with fraction 1.  fraction(l) is the part of a step's work that is done
// when l's gradient is ready; `measured` is the time of the net's own work for the whole step, extrapolated from the
// work so far.  Waiting for admission comes before `start`.  The time that the inner sink takes for gradients, and that
// of the delays, does not count as compute.
//
//   Pacer pacer(graph, {.step_seconds = 0.05, .factor = factor_of_step});
//   const Turn turn = exchange.Begin(samples);
//   pacer.BeginStep(step);
//   net.Step(..., pacer.Wrap(&sink));
//   pacer.FinishStep();
//
// With step_seconds 0 and factor 1 Wrap returns the inner sink itself and no clock is read.
#pragma once

#include <functional>
#include <vector>

#include "framework/cluster/cluster_config.h"
#include "framework/core/model_profile.h"
#include "framework/core/time.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"

namespace dtrain {

// PacingClock is the wall clock, with a sleep until a given time.  Tests replace it by their own.
class PacingClock : public WallClock {
 public:
  virtual void SleepUntil(Nanos time);  // returns at once if it has passed
};

struct PacingOptions {
  double step_seconds = 0;                // least time of a step, before the factor
  std::function<double(int64_t)> factor;  // factor of a step: slowdown x jitter; empty: 1
};

// Returns the pacing of `worker` by a run's cluster section, with the factors that a simulation uses (cluster/noise.h).
// Throws ConfigError if the length of its slowdown does not divide `workers`.
PacingOptions PacingOf(const ClusterConfig& cluster, int workers, int worker, uint64_t seed);

// The work of a layer, in any unit; lists of them are in forward order.
struct LayerWork {
  Range params;  // its gradients in the arena; empty for a layer without parameters
  double forward = 0;
  double backward = 0;
};

// Returns the work as FLOPs per sample, or as measured seconds.  A layer that the profile lacks (it was fused into
// another) costs nothing.  A layer that the graph lacks throws ConfigError, naming both models and the layer.
std::vector<LayerWork> WorkOf(const Graph& graph);
std::vector<LayerWork> WorkOf(const Graph& graph, const ModelProfile& profile);

// Maps a range of the gradient arena to the part of a step's work that is done when it is ready.
class WorkFractions {
 public:
  explicit WorkFractions(std::vector<LayerWork> layers);
  // Returns a value in (0, 1]; 1 after the last parameter.  If no layer has a cost, all layers cost the same, a third
  // of it forward.
  double At(Range range) const;

 private:
  struct Point {
    int64_t end;  // end of the complete gradients
    double fraction;
  };
  std::vector<Point> points_;  // ordered by end
};

// Returns how long after the start of a step `fraction` of it is announced, if the net itself took `computed` to get
// there.
Nanos PacedOffset(double fraction, Nanos computed, Nanos step_least, double factor);

// Paces the steps of one worker.  Only the trainer's thread calls it.
class Pacer {
 public:
  Pacer(const Graph& graph, PacingOptions options);
  Pacer(const Graph& graph, const ModelProfile& profile, PacingOptions options);
  // Makes a pacer for tests.  `clock` is borrowed.
  Pacer(const std::vector<LayerWork>& layers, PacingOptions options, PacingClock& clock);
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  void BeginStep(int64_t step);
  // Returns the sink for the net in this step; `inner` must live until FinishStep.
  GradientSink* Wrap(GradientSink* inner);
  void FinishStep();
  // True if some steps are delayed.
  bool paces() const { return options_.step_seconds > 0 || options_.factor != nullptr; }
  // True if the step that has begun is delayed.
  bool delays() const { return active_; }

 private:
  class PacedSink : public GradientSink {
   public:
    explicit PacedSink(Pacer& pacer) : pacer_(pacer) {}
    void Ready(Range range, const ReadyEvent& written) override;

    GradientSink* inner = nullptr;

   private:
    Pacer& pacer_;
  };

  // Waits until the time at which `fraction` of the step may be over.  Returns the time at which the wait began.
  Nanos Await(double fraction);

  const WorkFractions fractions_;
  const PacingOptions options_;
  PacingClock wall_;
  PacingClock& clock_;
  PacedSink sink_{*this};
  bool active_ = false;  // true if this step is delayed
  double factor_ = 1;
  Nanos start_ = 0;
  Nanos aside_ = 0;  // time since the start that was not compute
};

}  // namespace dtrain
