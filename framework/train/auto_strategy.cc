#include "framework/train/auto_strategy.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/stored_checkpoint.h"
#include "framework/comm/gather.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/launch/world.h"
#include "framework/results/run_folder.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/strategies/sync/advice.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Returns the schedule that an effective config names; "" if its strategy is no schedule.
std::string ScheduleIn(const std::string& yaml) {
  config::Document document = config::Document::FromText(yaml, "the checkpoint's config");
  const std::string name = document.root().Section("strategy").String("name", "");
  const std::vector<std::string>& known = ScheduleNames();
  return std::find(known.begin(), known.end(), name) == known.end() ? "" : name;
}

// Returns the schedule of the newest checkpoint that can be read.  Errors in other checkpoints are reported when they
// are used.
std::string ScheduleOfCheckpoint(const RunConfig& config, const std::string& resume) {
  if (resume == "none") return "";
  try {
    std::vector<fs::path> files;
    if (resume == "auto") {
      files = CheckpointFolder(RunFolder(config.output).checkpoints(), 1).List();
    } else {
      files.push_back(FindCheckpoint(resume));
    }
    for (const fs::path& file : files) {
      try {
        return ScheduleIn(ReadStoredCheckpoint(file, CheckpointPart::kInfo).info.config_yaml);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return "";
}

// Returns the schedule of `plan: FILE`; "" if the file does not fit this run, which then measures.
std::string ScheduleOfPlanFile(const RunConfig& config) {
  if (!config.plan_is_file()) return "";
  return ScheduleOf(ReadPlan(config.plan), config, LayerGradientsOf(ReadModel(config)));
}

std::string DescribeChoice(const std::string& name,
                           const std::vector<SchedulePrediction>& predictions) {
  std::string chosen;
  std::vector<std::string> others;
  for (const SchedulePrediction& it : predictions) {
    if (it.name == name) {
      chosen =
          fmt::format("auto takes {} ({}): a step should take {:.3f} ms by measured times", name,
                      Counted(static_cast<int64_t>(it.buckets.size()), "bucket"), 1e3 * it.seconds);
    } else {
      others.push_back(fmt::format("{:.3f} ms with {}", 1e3 * it.seconds, it.name));
    }
  }
  return chosen + "; " + Join(others);
}

}  // namespace

RunConfig WithSchedule(const RunConfig& config, const std::string& name) {
  std::vector<std::string> overrides = {"strategy.name=" + name};
  if (StrategyRegistry::Get("strategy", name).make()->PlansByTime()) {
    overrides.push_back("strategy.profile=" + config::QuoteYaml(config.profile));
  }
  config::Document document =
      config::Document::FromText(config.effective_yaml, "the run's config", overrides);
  const RunConfig named = ReadRunConfig(document, config);
  RunConfig resolved = config;
  resolved.strategy_name = named.strategy_name;
  resolved.strategy = named.strategy;
  resolved.profile = named.profile;
  resolved.effective_yaml = named.effective_yaml;
  resolved.effective_json = named.effective_json;
  resolved.config_sha256 = named.config_sha256;
  return resolved;
}

RunConfig ResolveAutoStrategy(const RunConfig& config, const TrainRequest& request,
                              Transport& transport) {
  if (config.strategy_name != kAutoStrategy) return config;
  std::string name;
  TryTogether(transport, [&] {
    if (transport.rank() != 0) return;
    name = ScheduleOfCheckpoint(config, request.resume);
    if (!name.empty()) {
      log::Info("auto: {}, as in the run that is resumed", name);
    } else if (!PlansByTime(config)) {
      name = config.workers == 1 ? "allreduce" : "single";
      log::Info("auto takes {}: {}", name,
                config.workers == 1 ? "a single worker has no communication"
                                    : "entries are selected from the whole model, at once");
    } else if (name = ScheduleOfPlanFile(config); !name.empty()) {
      log::Info("auto: {}, as in {}", name, config.plan);
    }
  });
  name = Broadcast(transport, name);
  return name.empty() ? config : WithSchedule(config, name);
}

RunConfig ResolveAutoStrategy(const RunConfig& config, const LayerGradients& layer_gradients,
                              Transport& transport) {
  if (config.strategy_name != kAutoStrategy) return config;
  std::string name;
  if (transport.rank() == 0) {
    const std::vector<SchedulePrediction> predictions = PredictSchedules(layer_gradients);
    name = BestSchedule(predictions).name;
    log::Info("{}", DescribeChoice(name, predictions));
  }
  return WithSchedule(config, Broadcast(transport, name));
}

}  // namespace dtrain
