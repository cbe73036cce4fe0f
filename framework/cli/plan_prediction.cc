#include "framework/cli/plan_prediction.h"

#include <utility>

#include <fmt/format.h>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/compress/compressor.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/schedule_profile.h"
#include "framework/simulate/simulated_run.h"

namespace dtrain {
namespace {

// A name, optionally with one of its keys: "mgwfbp:rule=published", "topk:density=0.001".
struct NameWithKey {
  explicit NameWithKey(const std::string& text)
      : name(text.substr(0, text.find(':'))),
        key(text.substr(std::min(name.size() + 1, text.size()))) {}
  std::string name, key;
};

bool HasDensity(const std::string& compressor) {
  const auto made = CompressorRegistry::Get("compressor", compressor).make();
  return made->sends_entries() && !made->density_by_strategy();
}

class StepForecast {
 public:
  explicit StepForecast(const PlanOptions& options)
      : options_(options), profile_(options.scenario.Profile()), given_(options.scenario.Load()) {
    if (given_.workers < 2) {
      throw UsageError("a single worker has no communication to predict",
                       "give --workers N or a --cluster");
    }
    given_.warnings.clear();  // no run follows
    if (given_.overlap_buckets) {
      log::Warning(
          "overlap_buckets is not predicted: buckets are summed one after the other here; dtrain "
          "simulate supports it");
    }
    if (!IsSchedule(given_)) {
      log::Info(
          "strategy {} is no schedule of all-reduces and is not predicted; dtrain simulate "
          "--compare compares it with others",
          given_.strategy_name);
    }
  }

  Predictions Run() const {
    Predictions predictions;
    for (const Way& way : Ways()) {
      const RunConfig each_layer = LoadFor("wfbp", way);
      const TimedGradients gradients = GradientsOf(each_layer);
      const double wfbp = Predict(each_layer, gradients, "wfbp", way).seconds;
      for (const std::string& schedule : options_.schedules) {
        Prediction it = Predict(LoadFor(schedule, way), gradients, schedule, way);
        it.wfbp_seconds = wfbp;
        predictions.all.push_back(std::move(it));
      }
    }
    if (IsSchedule(given_) && HasPlan(given_.collective)) {
      const TimedGradients gradients = GradientsOf(given_);
      predictions.own = Predict(given_, gradients, given_.strategy_name, OwnWay());
      // With `plan: FILE`, these are the buckets of that file.
      Send(given_, gradients.planned, *predictions.own);
    }
    return predictions;
  }

 private:
  // Holds the gradients and their times, which are the same for every schedule.  For thousands of workers it takes
  // seconds to compute them.
  struct TimedGradients {
    LayerGradients layer_gradients;
    bool measured = false;       // Prediction::measured
    std::vector<Range> planned;  // the buckets of this config's run
  };

  static bool HasPlan(const std::string& collective) {
    return ScheduleRulesOf(collective) != nullptr;
  }
  static bool IsSchedule(const RunConfig& config) {
    return config.strategy->traits().sums_gradients();
  }

  bool IsOwn(const std::string& compressor) const {
    return given_.compress.on() && NameWithKey(compressor).name == given_.compress.name;
  }

  Way OwnWay() const {
    const CompressConfig& compress = given_.compress;
    if (compress.sends_entries()) return {compress.name, "", compress.exchange};
    return {compress.name, given_.collective, ""};
  }

  std::vector<std::string> Compressors() const {
    std::vector<std::string> asked = options_.compressors;
    if (asked.empty() && given_.compress.on()) asked = {given_.compress.name};
    std::vector<std::string> compressors = {""};  // "" is the baseline of the comparison
    for (const std::string& it : asked) {
      if (NameWithKey(it).key.rfind("exchange", 0) == 0) {
        throw UsageError("--compressors: '" + it + "' sets the exchange of sparsified gradients",
                         "give it with --exchanges, for all compressors");
      }
      const bool known = std::find(compressors.begin(), compressors.end(), it) != compressors.end();
      if (it == "none" || known) continue;
      if (CompressorRegistry::Get("compressor", NameWithKey(it).name).make()->coder() != nullptr) {
        throw UsageError(
            "what " + it + " sends cannot be predicted",
            "leave it out; dtrain simulate with the model (--config) counts its bytes");
      }
      compressors.push_back(it);
    }
    return compressors;
  }

  std::vector<Way> Ways() const {
    std::vector<std::string> collectives = options_.collectives;
    if (collectives.empty()) {
      collectives = CollectiveRegistry::Names();
      std::erase_if(collectives, [](const std::string& it) { return !HasPlan(it); });
    }
    const std::vector<std::string> exchanges =
        options_.exchanges.empty() ? SparseCollectiveNames() : options_.exchanges;
    std::vector<Way> ways;
    bool selects = false;
    for (const std::string& compressor : Compressors()) {
      const std::string name = NameWithKey(compressor).name;
      if (!name.empty() && !CompressorRegistry::Get("compressor", name).make()->rounds()) {
        for (const std::string& it : exchanges) ways.push_back({compressor, "", it});
        selects = true;
      } else {
        for (const std::string& it : collectives) ways.push_back({compressor, it, ""});
      }
    }
    if (!selects && !options_.exchanges.empty()) {
      throw UsageError("--exchanges is for sparsified gradients, and no compressor sparsifies them",
                       "--compressors topk");
    }
    return ways;
  }

  // Sets the compressor.  The config's own compressor keeps the config's keys, except the key given with its name.
  void SetCompressor(const std::string& asked, ScenarioOptions& scenario,
                     std::vector<std::string>& overrides) const {
    const NameWithKey compressor(asked);
    if (asked.empty() || !IsOwn(asked)) {
      scenario.DropSettings("compress");
      overrides.push_back("compress.name=" + (asked.empty() ? "none" : compressor.name));
    }
    if (asked.empty()) return;
    const bool same_density = !IsOwn(asked) && given_.compress.sends_entries() &&
                              HasDensity(given_.compress.name) && HasDensity(compressor.name);
    if (same_density) {
      overrides.push_back(fmt::format("compress.density={}", given_.compress.density));
    }
    // The later one of two settings of a key counts.
    if (!compressor.key.empty()) overrides.push_back("compress." + compressor.key);
  }

  RunConfig LoadFor(const std::string& asked, const Way& way) const {
    ScenarioOptions scenario = options_.scenario;
    const NameWithKey schedule(asked);
    scenario.DropSettings("strategy");
    std::vector<std::string> overrides = {"strategy.name=" + schedule.name};
    if (!schedule.key.empty()) overrides.push_back("strategy." + schedule.key);
    SetCompressor(way.compressor, scenario, overrides);
    if (!way.collective.empty()) overrides.push_back("collective=" + way.collective);
    if (!way.exchange.empty()) overrides.push_back("compress.exchange=" + way.exchange);
    RunConfig config = scenario.Load(overrides);
    config.warnings.clear();
    config.notes.clear();
    config.plan = "auto";
    return config;
  }

  TimedGradients GradientsOf(const RunConfig& config) const {
    const SimulatedRun run(config, profile_, false);
    const SimulationSetup& setup = run.setup();
    return {run.PlannedLayerGradients(), static_cast<bool>(MeasuredSums(setup.profile, config)),
            setup.exchange.actors.buckets};
  }

  static Prediction Predict(const RunConfig& config, const TimedGradients& gradients,
                            const std::string& schedule, const Way& way) {
    if (!IsSchedule(config)) {
      throw UsageError("'" + schedule + "' is no schedule of all-reduces",
                       "--schedules takes naive, wfbp, single, allreduce and mgwfbp");
    }
    const CompressConfig& compress = config.compress;
    Prediction prediction{.schedule = schedule,
                          .way = way,
                          .compressor = compress.name,
                          .layer_gradients = gradients.layer_gradients,
                          .measured = gradients.measured};
    if (compress.sends_entries()) prediction.density = compress.density;
    Send(config, BucketsOf(config, gradients.layer_gradients), prediction);
    return prediction;
  }

  static void Send(const RunConfig& config, const std::vector<Range>& buckets, Prediction& it) {
    it.buckets = buckets;
    it.sendings =
        SendingsOf(it.layer_gradients, buckets,
                   config.strategy->Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward);
    it.seconds = it.sendings.back().end;
  }

  const PlanOptions& options_;
  const std::optional<ModelProfile> profile_;
  RunConfig given_;
};

}  // namespace

Predictions PredictAll(const PlanOptions& options) { return StepForecast(options).Run(); }

}  // namespace dtrain
