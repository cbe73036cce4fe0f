#include "framework/cluster/pacing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "framework/cluster/noise.h"
#include "framework/core/error.h"

namespace dtrain {

// WallNow counts CLOCK_MONOTONIC's nanoseconds.  After a signal, the sleep continues to the same absolute time.
void PacingClock::SleepUntil(Nanos time) {
  const timespec until{time / 1'000'000'000, time % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

PacingOptions PacingOf(const ClusterConfig& cluster, int workers, int worker, uint64_t seed) {
  const double slowdown = cluster.SlowdownOf(workers).at(static_cast<size_t>(worker));
  PacingOptions options;
  options.step_seconds = cluster.step_seconds;
  if (slowdown == 1 && cluster.jitter == 0) return options;
  options.factor = [slowdown, jitter = cluster.jitter, seed, worker](int64_t step) {
    return slowdown * JitterFactor(jitter, seed, worker, step);
  };
  return options;
}

std::vector<LayerWork> WorkOf(const Graph& graph) {
  std::vector<LayerWork> work;
  for (const GraphLayer& layer : graph.layers()) {
    work.push_back({layer.param_range, layer.cost.forward_flops, layer.cost.backward_flops});
  }
  return work;
}

std::vector<LayerWork> WorkOf(const Graph& graph, const ModelProfile& profile) {
  std::vector<LayerWork> work;
  for (const GraphLayer& layer : graph.layers()) work.push_back({layer.param_range, 0, 0});
  for (const LayerProfile& measured : profile.layers) {
    const auto layer = std::find_if(graph.layers().begin(), graph.layers().end(),
                                    [&](const GraphLayer& l) { return l.name == measured.name; });
    if (layer == graph.layers().end()) {
      throw ConfigError(fmt::format("the profile is of model '{}': its layer '{}' is not in '{}'",
                                    profile.model, measured.name, graph.name()),
                        "measure one with dtrain time --profile FILE");
    }
    LayerWork& target = work[static_cast<size_t>(layer - graph.layers().begin())];
    target.forward = measured.forward_seconds;
    target.backward = measured.backward_seconds;
  }
  return work;
}

WorkFractions::WorkFractions(std::vector<LayerWork> layers) {
  const bool has_costs = std::any_of(layers.begin(), layers.end(), [](const LayerWork& layer) {
    return layer.forward + layer.backward > 0;
  });
  double forward = 0, total = 0;
  for (LayerWork& layer : layers) {
    if (!has_costs) layer.forward = 1, layer.backward = 2;
    forward += layer.forward;
    total += layer.forward + layer.backward;
  }
  double done = forward;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    done += layer->backward;
    if (!layer->params.empty()) {
      points_.push_back({layer->params.end, std::min(done / total, 1.0)});
    }
  }
}

double WorkFractions::At(Range range) const {
  const auto point = std::lower_bound(points_.begin(), points_.end(), range.end,
                                      [](const Point& p, int64_t end) { return p.end < end; });
  return point == points_.end() ? 1 : point->fraction;
}

// fraction x measured is `computed`, because `measured` = computed / fraction.
Nanos PacedOffset(double fraction, Nanos computed, Nanos step_least, double factor) {
  const double least = fraction * static_cast<double>(step_least);
  return static_cast<Nanos>(factor * std::max(static_cast<double>(computed), least));
}

Pacer::Pacer(const Graph& graph, PacingOptions options)
    : fractions_(WorkOf(graph)), options_(std::move(options)), clock_(wall_) {}

Pacer::Pacer(const Graph& graph, const ModelProfile& profile, PacingOptions options)
    : fractions_(WorkOf(graph, profile)), options_(std::move(options)), clock_(wall_) {}

Pacer::Pacer(const std::vector<LayerWork>& layers, PacingOptions options, PacingClock& clock)
    : fractions_(layers), options_(std::move(options)), clock_(clock) {}

void Pacer::BeginStep(int64_t step) {
  factor_ = options_.factor ? options_.factor(step) : 1;
  active_ = options_.step_seconds > 0 || factor_ > 1;
  if (!active_) return;
  start_ = clock_.Now();
  aside_ = 0;
}

GradientSink* Pacer::Wrap(GradientSink* inner) {
  if (!active_) return inner;
  sink_.inner = inner;
  return &sink_;
}

void Pacer::FinishStep() {
  if (active_) Await(1);
  active_ = false;
}

Nanos Pacer::Await(double fraction) {
  const Nanos arrived = clock_.Now();
  const Nanos computed = arrived - start_ - aside_;
  const Nanos due =
      start_ + PacedOffset(fraction, computed, FromSeconds(options_.step_seconds), factor_);
  if (due > arrived) clock_.SleepUntil(due);
  return arrived;
}

// Waits for the device first, since its work counts as compute.
void Pacer::PacedSink::Ready(Range range, const ReadyEvent& written) {
  written.Wait();
  const Nanos arrived = pacer_.Await(pacer_.fractions_.At(range));
  if (inner != nullptr) inner->Ready(range, written);
  pacer_.aside_ += pacer_.clock_.Now() - arrived;
}

}  // namespace dtrain
