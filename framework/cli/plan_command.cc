// `dtrain plan`: how long a step takes with each schedule and collective, before anything is run.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/cli/result_table.h"
#include "framework/cli/scenario.h"
#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/text.h"
#include "framework/runtime/setup/run_exchange.h"
#include "framework/runtime/setup/schedule_profile.h"
#include "framework/runtime/simulate/simulated_run.h"
#include "framework/strategies/sync/advice.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

// How sums are carried: a collective or, of what a compressor selects, an exchange.
struct Way {
  std::string collective, exchange;  // one of them is ""

  std::string text() const {
    return exchange.empty() ? "collective " + collective : "exchange " + exchange;
  }
};

// In the model of MG-WFBP (strategies/sync/merging.h).
struct Prediction {
  std::string schedule;
  Way way;
  std::string compressor;  // "" for none
  GradientPieces pieces;
  std::vector<Range> buckets;
  bool measured = false;               // the times of its sums are the profile's
  std::vector<GroupSending> sendings;  // of each bucket
  double seconds = 0;

  std::string name() const { return compressor.empty() ? schedule : schedule + "+" + compressor; }
  double compute() const { return pieces.ready.back(); }
  double exposed() const { return std::max(0.0, seconds - compute()); }
};

struct PlanOptions {
  ScenarioOptions scenario;
  std::vector<std::string> schedules = {"naive",     "wfbp",   "single",
                                        "allreduce", "mgwfbp", "mgwfbp:rule=published"};
  std::vector<std::string> collectives;  // empty: all whose plan is known
};

// `schedule`: a strategy, with one of its keys as in mgwfbp:rule=published.
RunConfig LoadFor(const ScenarioOptions& scenario, const std::string& schedule, const Way& way) {
  const size_t colon = schedule.find(':');
  std::vector<std::string> overrides = {"strategy.name=" + schedule.substr(0, colon)};
  if (!way.collective.empty()) overrides.push_back("collective=" + way.collective);
  if (!way.exchange.empty()) overrides.push_back("compress.exchange=" + way.exchange);
  if (colon != std::string::npos) overrides.push_back("strategy." + schedule.substr(colon + 1));
  RunConfig config = scenario.Load(overrides);
  if (way.exchange.empty() && !config.compress.rounds()) config.compress = {};
  config.warnings.clear();  // nothing is run
  return config;
}

struct TimedGradients {
  GradientPieces pieces;
  bool measured = false;  // Prediction::measured
};

// Gradients and times are the same for every schedule; among thousands of workers it takes seconds to
// find them.
TimedGradients GradientsFor(const ScenarioOptions& scenario,
                            const std::optional<ModelProfile>& profile, const Way& way) {
  const RunConfig config = LoadFor(scenario, "wfbp", way);
  const SimulatedRun run(config, profile, false);
  return {run.PlannedPieces(), static_cast<bool>(MeasuredSums(run.setup().profile, config))};
}

Prediction Predict(const ScenarioOptions& scenario, const TimedGradients& gradients,
                   const std::string& schedule, const Way& way) {
  const GradientPieces& pieces = gradients.pieces;
  const RunConfig config = LoadFor(scenario, schedule, way);
  const Placement placement = config.strategy->Place(2);
  if (!config.strategy->synchronous() || placement.actors() > placement.workers) {
    throw UsageError("'" + schedule + "' is no schedule of all-reduces",
                     "--schedules takes naive, wfbp, single, allreduce and mgwfbp");
  }
  Prediction prediction{
      schedule, way, config.compress.name, pieces, BucketsOf(config, pieces), gradients.measured};
  const MergeStart start =
      config.strategy->Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward;
  prediction.sendings = SendingsOf(pieces, prediction.buckets, start);
  prediction.seconds = prediction.sendings.back().end;
  return prediction;
}

// All, those of selections where the config compresses.
std::vector<Way> PlannedWays(const PlanOptions& options, bool compresses) {
  std::vector<Way> ways;
  for (const std::string& name : options.collectives) ways.push_back({name, ""});
  if (!ways.empty()) return ways;
  for (const std::string& name : CollectiveRegistry::Names()) {
    if (CollectiveRegistry::Get("collective", name).rules != nullptr) ways.push_back({name, ""});
  }
  if (!compresses) return ways;
  for (const std::string& name : SparseCollectiveNames()) ways.push_back({"", name});
  return ways;
}

ordered_json Json(const Prediction& prediction, double wfbp_seconds) {
  const int64_t bytes = prediction.pieces.total() * static_cast<int64_t>(sizeof(float));
  ordered_json json = {{"schedule", prediction.schedule},
                       {"collective", prediction.way.collective},
                       {"compressor", prediction.compressor},
                       {"exchange", prediction.way.exchange},
                       {"buckets", prediction.buckets.size()},
                       {"step_seconds", prediction.seconds},
                       {"compute_seconds", prediction.compute()},
                       {"exposed_seconds", prediction.exposed()},
                       {"start_up_seconds", prediction.pieces.reduce_seconds(0)},
                       {"sum_seconds", prediction.pieces.reduce_seconds(bytes)},
                       {"sums", prediction.measured ? "measured" : "cluster"},
                       {"speedup_over_wfbp", wfbp_seconds / prediction.seconds}};
  ordered_json& sendings = json["sendings"] = ordered_json::array();
  for (size_t i = 0; i < prediction.sendings.size(); ++i) {
    const GroupSending& sending = prediction.sendings[i];
    sendings.push_back({{"begin", prediction.buckets[i].begin},
                        {"end", prediction.buckets[i].end},
                        {"gradients", sending.gradients},
                        {"ready_seconds", sending.ready},
                        {"begin_seconds", sending.begin},
                        {"end_seconds", sending.end}});
  }
  return json;
}

void PrintBuckets(const Prediction& prediction) {
  std::cout << fmt::format("\nThe buckets of {} with {}, in milliseconds since the step began:\n",
                           prediction.name(), prediction.way.text());
  std::cout << fmt::format("{:>8}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "bucket", "gradients", "size",
                           "ready", "sent from", "to");
  int number = 0;
  for (const GroupSending& sending : prediction.sendings) {
    std::cout << fmt::format("{:>8}{:>12}{:>12}{:>12.3f}{:>12.3f}{:>12.3f}\n", ++number,
                             sending.gradients, HumanBytes(static_cast<double>(sending.bytes)),
                             1e3 * sending.ready, 1e3 * sending.begin, 1e3 * sending.end);
  }
}

// What the best one gains, and over what.
void PrintAdvice(const Prediction& best, const std::vector<Prediction>& all) {
  const double start_up = best.pieces.reduce_seconds(0);
  const auto sent = static_cast<double>(best.pieces.total()) * sizeof(float);
  std::cout << fmt::format(
      "\nTake strategy {} with {}: a step takes {:.4f} s, {:.1f} % of it after the backward "
      "pass.\n",
      best.name(), best.way.text(), best.seconds, 100 * best.exposed() / best.seconds);
  std::cout << fmt::format(
      "{} a sum costs {:.3f} ms to start, and {:.3f} ms for all {} of the gradient; to compute "
      "takes {:.3f} ms.\n",
      best.measured ? "As the profile has measured," : "By the description of the cluster,",
      1e3 * start_up, 1e3 * best.pieces.reduce_seconds(static_cast<int64_t>(sent)),
      HumanBytes(sent), 1e3 * best.compute());
  std::vector<std::string> others;
  for (const Prediction& other : all) {
    if (other.way.text() != best.way.text() || other.schedule == best.schedule) continue;
    others.push_back(
        fmt::format("{:.2f} times as fast as {}", other.seconds / best.seconds, other.name()));
  }
  if (!others.empty()) std::cout << Join(others, ",\n") << ".\n";
}

// Of equal ones, but for rounding, the one with fewer buckets.
const Prediction& BestOf(const std::vector<Prediction>& all) {
  return *std::min_element(all.begin(), all.end(), [](const Prediction& a, const Prediction& b) {
    return IsBetterSchedule(a.seconds, a.buckets.size(), b.seconds, b.buckets.size());
  });
}

int RunPlan(const PlanOptions& options, bool json) {
  const ScenarioOptions& scenario = options.scenario;
  const std::optional<ModelProfile> profile = scenario.Profile();
  const RunConfig given = scenario.Load();
  if (given.workers < 2) {
    throw UsageError("one worker alone exchanges nothing", "give --workers N or a --cluster");
  }
  std::vector<Prediction> all;
  ordered_json rows = ordered_json::array();
  ResultTable table("schedule", "",
                    {{"buckets", "buckets", 0, true},
                     {"step_ms", "step ms", 3, true},
                     {"exposed_ms", "exposed ms", 3, true},
                     {"speedup", "x wfbp", 2, true}});
  for (const Way& way : PlannedWays(options, given.compress.on() && !given.compress.rounds())) {
    const TimedGradients gradients = GradientsFor(scenario, profile, way);
    const double wfbp = Predict(scenario, gradients, "wfbp", way).seconds;
    for (const std::string& schedule : options.schedules) {
      const Prediction& it = all.emplace_back(Predict(scenario, gradients, schedule, way));
      rows.push_back(Json(it, wfbp));
      table.Add({.name = it.name() + ", " + way.collective + way.exchange +
                         (it.measured ? " (measured)" : ""),
                 .runs = 1,
                 .values = {{static_cast<double>(it.buckets.size())},
                            {1e3 * it.seconds},
                            {1e3 * it.exposed()},
                            {wfbp / it.seconds}}});
    }
  }
  const Prediction& best = BestOf(all);
  if (json) {
    std::cout << ordered_json{{"predictions", rows},
                              {"advice",
                               {{"schedule", best.schedule},
                                {"collective", best.way.collective},
                                {"compressor", best.compressor},
                                {"exchange", best.way.exchange}}}}
                     .dump(2)
              << '\n';
    return 0;
  }
  std::cout << table.Text();
  PrintAdvice(best, all);
  PrintBuckets(best);
  return 0;
}

}  // namespace

static void AddPlanCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "plan",
                 "predict the step time of every synchronous schedule and collective on a cluster",
                 [options, &invocation] { return RunPlan(*options, invocation.json); });
  AddScenarioOptions(*command, options->scenario);
  command
      ->add_option("--schedules", options->schedules,
                   "schedules to predict, with a key as in allreduce:fusion_bytes=4194304")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--collectives", options->collectives,
                   "collectives to predict (default: all but mpi)")
      ->delimiter(',');
}

DTRAIN_COMMAND("plan", 45, AddPlanCommand);

}  // namespace dtrain
