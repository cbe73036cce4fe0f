// `dtrain plan`: how long a step takes with each schedule, compressor, collective and exchange, before
// anything is run, and which of them to take.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/cli/plan_prediction.h"
#include "framework/cli/result_table.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/strategies/sync/advice.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

// A compressor changes the numerical result, so it is advised only if it shortens a step by at least this fraction.
constexpr double kWorthACompressor = 0.01;

// Measured all-reduce times and those computed from the cluster's description are not comparable.  If there are both,
// the advice is the best of the measured predictions.
struct Advice {
  const Prediction* best = nullptr;
  const Prediction* described = nullptr;   // shorter, but not measured
  const Prediction* compressed = nullptr;  // shorter, but by too little
  bool mixed = false;
};

// Returns the best of the predictions that satisfy `counts`; null if there is none.  If two are equal up to rounding,
// the one with fewer buckets is better.
template <class Condition>
const Prediction* BestOf(const std::vector<Prediction>& all, const Condition& counts) {
  const Prediction* best = nullptr;
  for (const Prediction& it : all) {
    if (!counts(it)) continue;
    if (best == nullptr ||
        IsBetterSchedule(it.seconds, it.buckets.size(), best->seconds, best->buckets.size())) {
      best = &it;
    }
  }
  return best;
}

Advice Advise(const std::vector<Prediction>& all) {
  const auto measured = [](const Prediction& it) { return it.measured; };
  const auto any = [](const Prediction&) { return true; };
  const int64_t count = std::count_if(all.begin(), all.end(), measured);
  Advice advice{.best = count > 0 ? BestOf(all, measured) : BestOf(all, any),
                .mixed = count > 0 && count < std::ssize(all)};
  if (const Prediction* const best = BestOf(all, any); best->measured != advice.best->measured) {
    advice.described = best;
  }
  if (advice.best->compressor.empty()) return advice;
  const Prediction* const dense = BestOf(all, [&](const Prediction& it) {
    return it.compressor.empty() && it.measured == advice.best->measured;
  });
  if (dense != nullptr && advice.best->seconds > (1 - kWorthACompressor) * dense->seconds) {
    advice.compressed = std::exchange(advice.best, dense);
    return advice;
  }
  // The advice names the first given of compressors that differ by less than kWorthACompressor.
  for (const Prediction& it : all) {
    if (it.compressor.empty() || it.measured != advice.best->measured) continue;
    if (it.seconds * (1 - kWorthACompressor) > advice.best->seconds) continue;
    advice.best = BestOf(all, [&](const Prediction& other) {
      return other.way.compressor == it.way.compressor && other.measured == it.measured;
    });
    break;
  }
  return advice;
}

ordered_json NamesOf(const Prediction& prediction) {
  ordered_json json = {{"schedule", prediction.schedule},
                       {"collective", prediction.way.collective},
                       {"compressor", prediction.compressor},
                       {"exchange", prediction.way.exchange}};
  if (prediction.density) json["density"] = *prediction.density;
  return json;
}

void PutTimes(const Prediction& prediction, ordered_json& json) {
  json["step_seconds"] = prediction.seconds;
  json["compute_seconds"] = prediction.compute();
  json["exposed_seconds"] = prediction.exposed();
  json["sums"] = prediction.measured ? "measured" : "cluster";
}

ordered_json Short(const Prediction& prediction) {
  ordered_json json = NamesOf(prediction);
  PutTimes(prediction, json);
  return json;
}

ordered_json Json(const Prediction& prediction, const std::optional<Prediction>& own) {
  const int64_t bytes = prediction.layer_gradients.total() * static_cast<int64_t>(sizeof(float));
  ordered_json json = NamesOf(prediction);
  json["buckets"] = prediction.buckets.size();
  PutTimes(prediction, json);
  json["start_up_seconds"] = prediction.layer_gradients.reduce_seconds(0);
  json["sum_seconds"] = prediction.layer_gradients.reduce_seconds(bytes);
  json["speedup_over_wfbp"] = prediction.wfbp_seconds / prediction.seconds;
  if (own) json["speedup_over_config"] = own->seconds / prediction.seconds;
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

void PrintJson(const Predictions& predictions, const Advice& advice) {
  ordered_json rows = ordered_json::array();
  for (const Prediction& it : predictions.all) rows.push_back(Json(it, predictions.own));
  ordered_json json = {{"predictions", rows}, {"advice", Short(*advice.best)}};
  if (advice.described != nullptr) json["shorter_if_described_well"] = Short(*advice.described);
  if (predictions.own) json["config"] = Short(*predictions.own);
  std::cout << JsonText(json, 2) << '\n';
}

std::string RowName(const Prediction& it) {
  return it.name() + ", " + it.way.collective + it.way.exchange +
         (it.measured ? " (measured)" : "");
}

void PrintTable(const Predictions& predictions) {
  ResultTable table("schedule", "",
                    {{"buckets", "buckets", 0, true},
                     {"step_ms", "step ms", 3, true},
                     {"exposed_ms", "exposed ms", 3, true},
                     {"speedup", "x wfbp", 2, true},
                     {"speedup_over_config", "x config", 2, false}});
  for (const Prediction& it : predictions.all) {
    TableRow row{.name = RowName(it),
                 .runs = 1,
                 .values = {{static_cast<double>(it.buckets.size())},
                            {1e3 * it.seconds},
                            {1e3 * it.exposed()},
                            {it.wfbp_seconds / it.seconds},
                            {}}};
    if (predictions.own) row.values.back() = {predictions.own->seconds / it.seconds};
    table.Add(std::move(row));
  }
  std::cout << table.Text();
}

void PrintBuckets(const Prediction& prediction) {
  std::cout << fmt::format("\nThe buckets of {} with {}, in milliseconds since the step began:\n",
                           prediction.name(), prediction.way.sums());
  std::cout << fmt::format("{:>8}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "bucket", "gradients", "size",
                           "ready", "sent from", "to");
  int number = 0;
  for (const GroupSending& sending : prediction.sendings) {
    std::cout << fmt::format("{:>8}{:>12}{:>12}{:>12.3f}{:>12.3f}{:>12.3f}\n", ++number,
                             sending.gradients, HumanBytes(static_cast<double>(sending.bytes)),
                             1e3 * sending.ready, 1e3 * sending.begin, 1e3 * sending.end);
  }
}

// Returns the step time and its share of exposed communication: "60.000 ms, 12.0 % of it after the backward pass".
std::string StepText(const Prediction& it) {
  return fmt::format("{:.3f} ms, {:.1f} % of it after the backward pass", 1e3 * it.seconds,
                     100 * it.exposed() / it.seconds);
}

bool SameChoice(const Prediction& a, const Prediction& b) {
  return a.schedule == b.schedule && a.way == b.way;
}

// Returns the alternatives to the best prediction: the best one with each other compressor, the best one with each
// other collective or exchange and the same compressor, and the other schedules with the same Way.
std::vector<const Prediction*> OthersThan(const Prediction& best,
                                          const std::vector<Prediction>& all) {
  std::vector<const Prediction*> others;
  const auto add = [&](const Prediction* other) {
    const bool known = std::find(others.begin(), others.end(), other) != others.end();
    if (!known && !SameChoice(*other, best)) others.push_back(other);
  };
  for (const Prediction& it : all) {
    if (it.way.compressor == best.way.compressor) continue;
    add(BestOf(all,
               [&](const Prediction& other) { return other.way.compressor == it.way.compressor; }));
  }
  for (const Prediction& it : all) {
    if (it.way.compressor != best.way.compressor || it.way == best.way) continue;
    add(BestOf(all, [&](const Prediction& other) { return other.way == it.way; }));
  }
  for (const Prediction& it : all) {
    if (it.way == best.way) add(&it);
  }
  return others;
}

// Prints the step time of the alternatives.
void PrintOthers(const Advice& advice, const Predictions& predictions) {
  ResultTable table("instead of it", "",
                    {{"step_ms", "step ms", 3, true},
                     {"exposed_ms", "exposed ms", 3, true},
                     {"longer", "x the step", 2, true}});
  const auto add = [&](const Prediction& it, const std::string& what) {
    const std::string by = advice.mixed && !it.measured ? " (described)" : "";
    table.Add({.name = RowName(it) + by + what,
               .runs = 1,
               .values = {
                   {1e3 * it.seconds}, {1e3 * it.exposed()}, {it.seconds / advice.best->seconds}}});
  };
  const std::vector<const Prediction*> others = OthersThan(*advice.best, predictions.all);
  if (predictions.own) add(*predictions.own, " (the config)");
  for (const Prediction* const other : others) add(*other, "");
  if (predictions.own || !others.empty()) std::cout << '\n' << table.Text();
}

void PrintAdvice(const Advice& advice, const Predictions& predictions) {
  const Prediction& best = *advice.best;
  const double start_up = best.layer_gradients.reduce_seconds(0);
  const auto sent = static_cast<double>(best.layer_gradients.total()) * sizeof(float);
  std::cout << fmt::format("\nTake strategy {} with {}: a step takes {}.\n", best.name(),
                           best.way.sums(), StepText(best));
  std::cout << fmt::format(
      "{} a sum costs {:.3f} ms to start, and {:.3f} ms for all {} of the gradient; to compute "
      "takes {:.3f} ms.\n",
      best.measured ? "As the profile has measured," : "By the description of the cluster,",
      1e3 * start_up, 1e3 * best.layer_gradients.reduce_seconds(static_cast<int64_t>(sent)),
      HumanBytes(sent), 1e3 * best.compute());
  if (predictions.own) {
    const Prediction& own = *predictions.own;
    std::cout << fmt::format("{} of the config, with {}, takes {}: {:.2f} times as long.\n",
                             own.name(), own.way.sums(), StepText(own), own.seconds / best.seconds);
  }
  if (advice.mixed) {
    std::cout
        << "The profile has measured some of the sums and not the others, so this is the best "
           "one of those that were measured.\n";
  }
  if (advice.described != nullptr) {
    const Prediction& it = *advice.described;
    std::cout << fmt::format(
        "By the description of the cluster alone {} with {} would be shorter, {:.3f} ms: dtrain "
        "bench sums measures it.\n",
        it.name(), it.way.sums(), 1e3 * it.seconds);
  }
  if (advice.compressed != nullptr) {
    std::cout << fmt::format(
        "{} with {} takes {:.3f} ms, less than {:.0f} % of a step less, and changes what is "
        "computed.\n",
        advice.compressed->name(), advice.compressed->way.sums(), 1e3 * advice.compressed->seconds,
        100 * kWorthACompressor);
  }
  if (!best.compressor.empty()) {
    const Prediction* const dense = BestOf(predictions.all, [&](const Prediction& it) {
      return it.compressor.empty() && it.measured == best.measured;
    });
    std::cout << best.way.compressor << " changes what is computed";
    if (dense != nullptr) {
      std::cout << fmt::format("; without a compressor take {} with {}: {}", dense->name(),
                               dense->way.sums(), StepText(*dense));
    }
    std::cout << ".\n";
  }
  PrintOthers(advice, predictions);
}

int RunPlan(const PlanOptions& options, bool json) {
  options.scenario.RefuseTrace();
  const Predictions predictions = PredictAll(options);
  const Advice advice = Advise(predictions.all);
  if (json) {
    PrintJson(predictions, advice);
    return 0;
  }
  PrintTable(predictions);
  PrintAdvice(advice, predictions);
  PrintBuckets(*advice.best);
  return 0;
}

}  // namespace

static void AddPlanCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = AddCommand(
      app, invocation, "plan",
      "predict the step time of every synchronous schedule with each compressor, collective and "
      "sparse exchange (compress.exchange) on a cluster, and recommend one",
      [options, &invocation] { return RunPlan(*options, invocation.json); });
  AddScenarioOptions(*command, options->scenario);
  const auto add = [&](const char* name, std::vector<std::string>& list, const char* help) {
    return command->add_option(name, list, help)->delimiter(',');
  };
  add("--schedules", options->schedules,
      "schedules to predict, optionally with a key, as in allreduce:fusion_bytes=4194304")
      ->capture_default_str();
  add("--compressors", options->compressors,
      "compressors to predict in addition to none, optionally with a key, as in "
      "topk:density=0.001; the default density is the config's (default: the config's own "
      "compressor)");
  add("--collectives", options->collectives,
      "collectives to predict, for gradients that are not sparsified (default: all but mpi)");
  add("--exchanges", options->exchanges,
      "exchanges to predict, for sparsified gradients (default: all)");
}

DTRAIN_COMMAND("plan", 45, AddPlanCommand);

}  // namespace dtrain
