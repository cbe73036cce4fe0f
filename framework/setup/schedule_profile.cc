#include "framework/setup/schedule_profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/cluster/compute_model.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

constexpr char kMeasureTogether[] =
    "a run with strategy.profile: measure leaves a profile.json that has them";

const SumProfile* SumsFor(const ModelProfile& profile, const RunConfig& config) {
  const std::string by = SumsBy(config);
  const auto found =
      std::find_if(profile.sums.begin(), profile.sums.end(), [&](const SumProfile& sums) {
        return sums.by == by && sums.workers == config.workers && !sums.times.empty();
      });
  return found == profile.sums.end() ? nullptr : &*found;
}

// Returns a text like "ordered among 2 workers, ring among 4 workers".
std::string SumsIn(const ModelProfile& profile) {
  std::vector<std::string> all;
  for (const SumProfile& sums : profile.sums) {
    all.push_back(fmt::format("{} among {}", sums.by, Counted(sums.workers, "worker")));
  }
  return Join(all);
}

void CheckModel(const ModelProfile& profile, const RunConfig& config, const Graph& graph,
                const std::string& source) {
  if (profile.model != graph.name()) {
    throw ConfigError(fmt::format("{} is a profile of model '{}', the run's is '{}'", source,
                                  profile.model, graph.name()),
                      "measure this one: strategy.profile: measure");
  }
  if (LayerGradientsOf(profile).ranges != LayerGradientsOf(graph).ranges) {
    throw ConfigError(
        fmt::format("{} is of a model '{}' with {} in other layers, the run's has {}", source,
                    profile.model, Counted(profile.params(), "parameter"), graph.weights().size()),
        "measure this one: strategy.profile: measure");
  }
  const std::string device(NameOf(DeviceKindOf(config.device)));
  if (profile.device == device) return;
  throw ConfigError(fmt::format("{} was measured on device '{}', the run's is '{}'", source,
                                profile.device, device),
                    "measure this one: strategy.profile: measure");
}

}  // namespace

void CheckProfile(const ModelProfile& profile, const RunConfig& config, const Graph& graph,
                  const std::string& source) {
  CheckModel(profile, config, graph, source);
  for (const LayerProfile& layer : profile.layers) {
    if (layer.params == 0 || layer.ready_seconds) continue;
    throw ConfigError(
        fmt::format("{} does not say when the gradient of layer '{}' is ready (ready_seconds)",
                    source, layer.name),
        kMeasureTogether);
  }
  if (profile.batch <= 0) throw ConfigError(source + " is of a batch of no samples");
  if (SumsFor(profile, config) != nullptr) return;
  throw ConfigError(
      fmt::format("{} has no times of sums by {} among {}; {}", source, SumsBy(config),
                  Counted(config.workers, "worker"),
                  profile.sums.empty() ? "it has none" : "it has those of " + SumsIn(profile)),
      kMeasureTogether);
}

void CheckProfile(const RunConfig& config, const Graph& graph) {
  if (config.profile == "measure" || !PlansByTime(config)) return;
  CheckProfile(ReadProfile(config.profile), config, graph, config.profile);
}

LayerGradients LayerGradientsFrom(const ModelProfile& profile, const RunConfig& config) {
  LayerGradients layer_gradients = LayerGradientsOf(profile);
  const int workers = static_cast<int>(config.workers);
  std::vector<int64_t> shares;
  for (int worker = 0; worker < workers; ++worker) {
    shares.push_back(SplitEvenly({0, config.batch}, workers, worker).size());
  }
  layer_gradients.ready = UsualReady(config.cluster, profile, shares);
  layer_gradients.reduce_seconds = MeasuredSums(profile, config);
  DT_CHECK(layer_gradients.reduce_seconds) << SumsBy(config);
  return layer_gradients;
}

ReduceTime MeasuredSums(const ModelProfile& profile, const RunConfig& config) {
  const SumProfile* const sums = SumsFor(profile, config);
  if (sums == nullptr) return {};
  ReduceTable table;
  for (const SumProfile::Time& time : sums->times) {
    table.entries.push_back({time.bytes, time.seconds});
  }
  return ReduceTimeOf(table);
}

ReduceTime ReduceTimeOf(const ReduceTable& table) {
  return [table](int64_t bytes) { return table.Seconds(bytes); };
}

SumProfile SumProfileOf(const ReduceTable& table, const RunConfig& config) {
  SumProfile sums{SumsBy(config), static_cast<int>(config.workers), {}};
  for (const ReduceTable::Entry& entry : table.entries) {
    sums.times.push_back({entry.bytes, entry.seconds});
  }
  return sums;
}

void NoteReady(const std::vector<double>& ready, double slowest, ModelProfile& profile) {
  size_t gradient = 0;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    if (layer->params > 0) layer->ready_seconds = ready.at(gradient++) / slowest;
  }
  DT_CHECK(gradient == ready.size()) << gradient << " layers, " << ready.size() << " times";
}

}  // namespace dtrain
