// Pacing: makes the compute of a real step take as long as a scenario says (step_seconds, slowdown,
// jitter), without computing more.
//
// Events are delayed, nothing else: the gradient of layer l is announced no earlier than
//
//   start + fraction(l) x factor x max(measured, step_seconds)
//
// and the step ends no earlier than the same with fraction 1.  fraction(l) is the part of a step's
// work that is done when l's gradient is; `measured` is what the net's own work would come to for
// the whole step, going by what it has taken so far.  Waiting for admission lies before `start`;
// the time in which the inner sink hands gradients on, and that of the delays, is no compute.
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

#include "framework/core/model_profile.h"
#include "framework/core/time.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/sim/cluster_config.h"

namespace dtrain {

// The wall's time, and sleep until then; a test has its own.
class PacingClock : public WallClock {
 public:
  virtual void SleepUntil(Nanos time);  // at once when it has passed
};

struct PacingOptions {
  double step_seconds = 0;                // the least a step takes, before the factor
  std::function<double(int64_t)> factor;  // of a step: slowdown x jitter; none is 1
};

// What a run's cluster section asks of `worker`, with the factors that a simulation uses
// (sim/noise.h).  Throws ConfigError when the length of its slowdown does not divide `workers`.
PacingOptions PacingOf(const ClusterConfig& cluster, int workers, int worker, uint64_t seed);

// The work of a layer in any unit, forward order.
struct LayerWork {
  Range params;  // its gradients in the arena; empty for a layer without parameters
  double forward = 0;
  double backward = 0;
};

// FLOPs per sample, or measured seconds.  A layer that the profile lacks (it was fused into
// another) costs nothing; a layer that the graph lacks throws ConfigError, naming both models and
// the layer.
std::vector<LayerWork> WorkOf(const Graph& graph);
std::vector<LayerWork> WorkOf(const Graph& graph, const ModelProfile& profile);

// Which part of a step's work is done when a range of the gradient arena is.
class WorkFractions {
 public:
  explicit WorkFractions(std::vector<LayerWork> layers);
  // In (0, 1]; 1 behind the last parameter.  Where no layer says what it costs all cost the same, a
  // third of it forward.
  double At(Range range) const;

 private:
  struct Point {
    int64_t end;  // of the gradients that are complete
    double fraction;
  };
  std::vector<Point> points_;  // by end
};

// How long after the start of a step `fraction` of it is announced, when the net itself took
// `computed` to get there.
Nanos PacedOffset(double fraction, Nanos computed, Nanos step_least, double factor);

// One thread, the trainer's, calls it.
class Pacer {
 public:
  Pacer(const Graph& graph, PacingOptions options);
  Pacer(const Graph& graph, const ModelProfile& profile, PacingOptions options);
  // For tests: `clock` is borrowed.
  Pacer(const std::vector<LayerWork>& layers, PacingOptions options, PacingClock& clock);
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  void BeginStep(int64_t step);
  // What the net is given as its sink in this step; `inner` must live until FinishStep.
  GradientSink* Wrap(GradientSink* inner);
  void FinishStep();

 private:
  class PacedSink : public GradientSink {
   public:
    explicit PacedSink(Pacer& pacer) : pacer_(pacer) {}
    void Ready(Range range, const ReadyEvent& written) override;

    GradientSink* inner = nullptr;

   private:
    Pacer& pacer_;
  };

  // Waits until `fraction` of the step may be over; returns when that was.
  Nanos Await(double fraction);

  const WorkFractions fractions_;
  const PacingOptions options_;
  PacingClock wall_;
  PacingClock& clock_;
  PacedSink sink_{*this};
  bool active_ = false;  // whether this step is delayed at all
  double factor_ = 1;
  Nanos start_ = 0;
  Nanos aside_ = 0;  // time since the start that was no compute
};

}  // namespace dtrain
