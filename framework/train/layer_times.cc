#include "framework/train/layer_times.h"

#include <algorithm>
#include <utility>

#include "framework/core/statistics.h"
#include "framework/core/time.h"

namespace dtrain {

LayerTimes::LayerTimes(Net& net) : net_(net) {
  net_.set_observer([this](const KernelTiming& timing) {
    const auto [it, fresh] = row_of_.try_emplace(*timing.name, rows_.size());
    if (fresh) rows_.push_back({.layer = timing.layer});
    rows_[it->second].step[timing.backward] += ToSeconds(timing.nanos);
  });
}

void LayerTimes::EndStep() {
  for (Row& row : rows_) {
    for (const int pass : {0, 1}) row.steps[pass].push_back(std::exchange(row.step[pass], 0));
  }
}

double LayerTimes::SecondsOf(const Row& row, int pass, size_t warm_up) {
  const std::vector<double>& steps = row.steps[pass];
  const auto skipped = static_cast<std::ptrdiff_t>(std::min(warm_up, steps.size()));
  return Median({steps.begin() + skipped, steps.end()});
}

std::vector<LayerProfile> LayerTimes::Layers(int64_t samples, size_t warm_up) const {
  std::vector<LayerProfile> layers;
  double forward = 0, backward = 0;
  for (const Row& row : rows_) {
    forward += SecondsOf(row, 0, warm_up);
    backward += SecondsOf(row, 1, warm_up);
    // A metric layer is no part of a model's profile.
    if (row.layer == nullptr || row.layer->layer->role() == LayerRole::kMetric) continue;
    const int64_t params = row.layer->param_range.size();
    const double flops = row.layer->cost.forward_flops + row.layer->cost.backward_flops;
    layers.push_back({row.layer->name, params, params * static_cast<int64_t>(sizeof(float)),
                      forward, backward, flops * static_cast<double>(samples)});
    forward = backward = 0;
  }
  return layers;
}

}  // namespace dtrain
