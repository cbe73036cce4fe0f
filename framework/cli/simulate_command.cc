// `dtrain simulate`: runs a config in virtual time, compares strategies over several seeds, or replays a recorded run.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/cli/command.h"
#include "framework/cli/result_table.h"
#include "framework/cli/scenario.h"
#include "framework/cli/simulate_progress.h"
#include "framework/cli/train_report.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/status_line.h"
#include "framework/core/text.h"
#include "framework/core/timeline_file.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/guessing.h"
#include "framework/results/run_folder.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "framework/study/settings.h"

namespace dtrain {
namespace {

struct SimulateOptions {
  ScenarioOptions scenario;
  std::vector<std::string> compare;
  std::vector<uint64_t> seeds;
  bool numeric = false;
  std::string replay;
  std::string output;
  std::string resume;  // "": no checkpoints
};

double RateOf(const Summary& summary) {
  return static_cast<double>(GradientsOf(summary)) / std::max(summary.seconds, 1e-9);
}

// Returns 0 for a run without staleness whose workers step together; nothing for one that does not count it.
std::optional<double> NoStaleness(const Summary& summary) {
  const auto strategy = StrategyRegistry::Get("strategy", summary.strategy).make();
  if (strategy->traits().lockstep) return 0.0;
  return std::nullopt;
}

double WaitOf(const Summary& summary) {
  double wait = 0, all = 0;
  for (const WorkerSummary& worker : summary.workers_detail) {
    wait += worker.wait_seconds;
    all += worker.wait_seconds + worker.compute_seconds;
  }
  return all > 0 ? wait / all : 0;
}

void Save(const RunFolder& folder, const RunConfig& config, const ExecutionPlan& plan,
          const Summary& summary, const std::vector<std::string>& timelines) {
  folder.WriteSummary(summary);  // before the others: it marks the folder as a run's
  folder.WritePlan(plan);
  folder.WriteConfig(config.effective_yaml);
  if (timelines.empty()) return;
  TimelineFile file(folder.timeline());
  for (const std::string& rank : timelines) file.Add(rank);
  file.Finish();
}

// The position of a run in a comparison.
struct ComparedRun {
  std::string name;  // name of the strategy; "": there is only one run
  int run = 1, runs = 1;
};

// Shows the progress of the run on stderr while it lives.
class WatchedRun {
 public:
  WatchedRun(const SimulatedRun& run, const ComparedRun& which)
      : progress_(which.name, which.run, which.runs, WallNow()), ticker_([this, &run](Nanos now) {
          progress_.Tick({run.steps_done(), run.steps(), run.virtual_time()}, now);
        }) {}
  ~WatchedRun() {
    ticker_.reset();
    progress_.End();
  }
  WatchedRun(const WatchedRun&) = delete;

 private:
  SimulateProgress progress_;
  std::optional<Ticker> ticker_;
};

// Returns nullopt if the run in `output` is resumed and had already completed.
std::optional<Summary> SimulateOnce(const SimulateOptions& options, const RunConfig& config,
                                    const std::string& output, bool quiet,
                                    const ComparedRun& which = {}) {
  std::optional<RunLock> lock;
  const bool resuming = !options.resume.empty() && GoesOnIn(output, options.resume);
  if (!output.empty()) lock.emplace(RunFolder(output).Create(resuming));
  const std::optional<ModelProfile> profile = options.scenario.Profile();
  const bool numeric = options.numeric || !profile.has_value();
  if (numeric && !quiet) TellDevice(config);
  std::optional<BusyProgress> begins(numeric ? "loading data" : "planning");
  SimulatedRun run(config, profile, numeric);
  if (run.data() != nullptr && !quiet && which.run == 1) TellData(config, *run.data());
  run.UseTrace(options.scenario.Trace(config));
  run.StudyGradients(output);
  if (quiet) run.BeQuiet();
  if (lock) run.WriteTo(output);
  if (lock && !options.resume.empty()) {
    const std::optional<int64_t> step = run.KeepCheckpoints(output, options.resume);
    if (step && run.IsFinished()) return std::nullopt;
    if (step && !quiet) log::Info("resumed after step {}", *step);
  }
  begins.reset();
  std::optional<WatchedRun> watched(std::in_place, run, which);
  const Summary summary = run.Run();
  watched.reset();
  WarnOfGuessing(summary, which.name);
  if (lock) Save(RunFolder(output), config, run.plan(), summary, run.timelines());
  return summary;
}

std::string ServersOf(const Summary& summary) {
  if (!summary.servers) return "";
  return " and " + Counted(*summary.servers, "server");
}

void Print(const Summary& summary) {
  std::cout << fmt::format("{} with {}{}: {:.3f} virtual s, {}, {:.2f} a second\n",
                           summary.strategy, Counted(summary.workers, "worker"), ServersOf(summary),
                           summary.seconds, Counted(GradientsOf(summary), "gradient"),
                           RateOf(summary));
  std::cout << fmt::format(
      "step {:.4f} s (p50), {:.4f} s (p90); workers wait {:.1f} % of their time\n",
      summary.step_seconds->p50, summary.step_seconds->p90, 100 * WaitOf(summary));
  if (summary.staleness) {
    const std::optional<int64_t>& lead = summary.staleness->clock_lead_max;
    std::cout << fmt::format("staleness mean {:.2f}, max {}{}\n", summary.staleness->mean,
                             summary.staleness->max,
                             lead ? fmt::format("; clock lead at most {}", *lead) : "");
  }
  std::cout << fmt::format("sent {:.1f} MB in {}, {} a gradient\n",
                           static_cast<double>(summary.communication->bytes_sent) * 1e-6,
                           Counted(summary.communication->messages, "message"),
                           HumanBytes(summary.communication->bytes_per_gradient.value_or(0)));
  std::cout << DeathsText(summary);
  if (summary.test) {
    std::cout << TestText(*summary.test) << fmt::format("\nweights {}\n", summary.weights_sha256);
  }
  if (summary.target) std::cout << TargetText(summary) << '\n';
}

using Value = std::optional<double>;

struct ComparedColumn {
  TableColumn shown;
  Value (*value)(const Summary&);
};

const ComparedColumn kComparedColumns[] = {
    {{"seconds", "virtual s", 3, true}, [](const Summary& s) { return Value(s.seconds); }},
    {{"gradients_per_second", "grads/s", 2, true},
     [](const Summary& s) { return Value(RateOf(s)); }},
    {{"step_seconds_p50", "step s", 4, true},
     [](const Summary& s) { return Value(s.step_seconds->p50); }},
    {{"wait_percent", "wait %", 1, true}, [](const Summary& s) { return Value(100 * WaitOf(s)); }},
    {{"staleness_mean", "staleness", 2, true},
     [](const Summary& s) { return s.staleness ? Value(s.staleness->mean) : NoStaleness(s); }},
    {{"clock_lead_max", "lead", 0, true},
     [](const Summary& s) {
       if (!s.staleness) return NoStaleness(s);
       return s.staleness->clock_lead_max ? Value(*s.staleness->clock_lead_max) : Value();
     }},
    {{"mbytes_sent", "MB sent", 1, true},
     [](const Summary& s) {
       return Value(static_cast<double>(s.communication->bytes_sent) * 1e-6);
     }},
    {{"accuracy_percent", "accuracy %", 2, false, "test_accuracy_percent"},
     [](const Summary& s) {
       return s.test && s.test->accuracy ? Value(100 * *s.test->accuracy) : Value();
     }},
    {{"perplexity", "perplexity", 2, false, "test_perplexity"},
     [](const Summary& s) { return s.test ? s.test->perplexity : Value(); }},
    {{"target_seconds", "target s", 3},
     [](const Summary& s) { return s.target ? s.target->seconds : Value(); }},
};

TableRow RowOf(const std::string& name, const std::vector<Summary>& runs) {
  TableRow row{.name = name, .runs = runs.size()};
  for (const ComparedColumn& column : kComparedColumns) {
    std::vector<double>& values = row.values.emplace_back();
    for (const Summary& run : runs) {
      if (const Value value = column.value(run)) values.push_back(*value);
    }
  }
  return row;
}

ResultTable TableOfColumns() {
  std::vector<TableColumn> columns;
  for (const ComparedColumn& column : kComparedColumns) columns.push_back(column.shown);
  return {"strategy", "seeds", std::move(columns)};
}

// Loads the config for an entry of --compare.  Values of --set for the config's own strategy or compressor do not apply
// to other ones.
RunConfig LoadCompared(const SimulateOptions& options, const std::string& name,
                       const RunConfig& own, uint64_t seed) {
  ScenarioOptions scenario = options.scenario;
  std::vector<std::string> overrides =
      ComparedOverrides(name, own.strategy_name, own.compress.on() ? own.compress.name : "none");
  for (const std::string& it : overrides) {
    if (it.starts_with("strategy.name=")) scenario.DropSettings("strategy");
    if (it.starts_with("compress.name=")) scenario.DropSettings("compress");
  }
  overrides.push_back(fmt::format("seed={}", seed));
  return scenario.Load(overrides);
}

int Compare(const SimulateOptions& options, bool json) {
  if (!options.output.empty()) {
    throw UsageError("--output is for one run, not for a comparison", "use --json");
  }
  const RunConfig own = options.scenario.Load();
  int code = 0;
  std::vector<std::string> names = options.compare;
  if (names.empty()) names.push_back("");
  std::vector<uint64_t> seeds = options.seeds;
  if (seeds.empty()) seeds.push_back(own.seed);
  // All configs are loaded first, so that an error in the last one is found before anything runs.
  std::vector<std::vector<RunConfig>> configs;
  for (const std::string& name : names) {
    auto& of = configs.emplace_back();
    for (const uint64_t seed : seeds) of.push_back(LoadCompared(options, name, own, seed));
  }
  ResultTable table = TableOfColumns();
  const int all = static_cast<int>(names.size() * seeds.size());
  int run = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    std::vector<Summary> runs;
    for (const RunConfig& config : configs[i]) {
      const ComparedRun which = {name.empty() ? config.strategy_name : name, ++run, all};
      runs.push_back(*SimulateOnce(options, config, "", true, which));
    }
    for (const Summary& run : runs) code = std::max(code, run.exit_code);
    table.Add(RowOf(name.empty() ? runs[0].strategy : name, runs));
  }
  std::cout << (json ? table.Json() : table.Text());
  return code;
}

// Refuses other options with --replay: a record contains the config, the model and the order of events of its run.
void RefuseBesideReplay(const SimulateOptions& options) {
  const ConfigOptions& config = options.scenario.config;
  const std::pair<bool, const char*> given[] = {{!config.file.empty(), "--config"},
                                                {!config.overrides.empty(), "--set"},
                                                {!config.cluster.empty(), "--cluster"},
                                                {!config.device.empty(), "--device"},
                                                {!options.scenario.profile.empty(), "--profile"},
                                                {!options.scenario.trace.empty(), "--trace"},
                                                {options.scenario.workers > 0, "--workers"},
                                                {!options.compare.empty(), "--compare"},
                                                {!options.seeds.empty(), "--seeds"},
                                                {options.numeric, "--numeric"},
                                                {!options.output.empty(), "--output"},
                                                {!options.resume.empty(), "--resume"}};
  for (const auto& [is_given, option] : given) {
    if (!is_given) continue;
    throw UsageError(
        fmt::format("--replay repeats the recorded run as it was: {} would change nothing", option),
        "leave it out; --config F --trace RECORD simulates another config with the recorded step "
        "times");
  }
}

// Replays a record.  The exit code is the verdict, as with cmp.  If an undamaged record ends with other weights, the
// fault is dtrain's or the machine's, not the file's.
int ReplayFile(const SimulateOptions& options, bool json) {
  const RunRecord record = ReadRecord(options.replay);
  config::Document document = config::Document::FromText(record.config_yaml, options.replay);
  const RunConfig config = ReadRunConfig(document, record.model_yaml);
  std::optional<BusyProgress> replaying("replaying the run");
  const std::string hash = ReplayRecord(config, record);
  replaying.reset();
  const bool equal = hash == record.weights_sha256;
  if (json) {
    std::cout << JsonText(
                     nlohmann::ordered_json{
                         {"recorded", record.weights_sha256}, {"replayed", hash}, {"equal", equal}},
                     2)
              << '\n';
  } else {
    std::cout << fmt::format("recorded {}\nreplayed {}\n{}\n", record.weights_sha256, hash,
                             equal ? "equal to the bit" : "NOT equal");
  }
  return equal ? 0 : static_cast<int>(ExitCode::kInternal);
}

int RunSimulate(const SimulateOptions& options, const Invocation& invocation) {
  if (!options.replay.empty()) RefuseBesideReplay(options);
  if (!options.resume.empty() && options.output.empty()) {
    throw UsageError("--resume needs the folder where the checkpoints are", "give --output DIR");
  }
  RefuseRepeated(options.seeds);
  LimitSpinning(invocation.argv);
  const status_line::WipeOnSignal wipe;
  if (!options.replay.empty()) return ReplayFile(options, invocation.json);
  if (!options.compare.empty() || !options.seeds.empty()) return Compare(options, invocation.json);
  const RunConfig config = options.scenario.Load({});
  const std::optional<Summary> summary =
      SimulateOnce(options, config, options.output, invocation.json);
  if (!summary) {
    PrintFinishedRun(std::cout, options.output, invocation.json);
    return 0;
  }
  if (invocation.json) {
    std::cout << ToJson(*summary);
  } else {
    Print(*summary);
  }
  return summary->exit_code;
}

}  // namespace

static void AddSimulateCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "simulate", "simulate a run in virtual time",
                 [options, &invocation] { return RunSimulate(*options, invocation); });
  AddScenarioOptions(*command, options->scenario);
  command
      ->add_option(
          "--compare", options->compare,
          "simulate several strategies, each with a compressor where '+' names one, and print a "
          "table, e.g. allreduce ps_ssp:staleness=5 gssp+gdtopk; keys are the strategy's, those of "
          "the "
          "compressor are written as compress.KEY")
      ->type_name("STRATEGY[+COMPRESSOR][:KEY=VALUE,...]");
  command->add_option("--seeds", options->seeds, "simulate once for each seed and print a table")
      ->delimiter(',');
  command->add_flag("--numeric", options->numeric,
                    "compute real gradients, with step times from the profile");
  command
      ->add_option(
          "--replay", options->replay,
          "repeat a recorded run (record.bin) bit for bit; exit code 1 if the weights differ")
      ->type_name("FILE");
  command
      ->add_option("--output", options->output,
                   "folder for config.yaml, plan.json, metrics.jsonl, summary.json, the best "
                   "weights and what "
                   "other keys "
                   "ask for (tensorboard, timeline, gradients)")
      ->type_name("DIR");
  command
      ->add_option("--resume", options->resume,
                   "write checkpoints to --output and resume from them: auto, none or a path "
                   "(default: no checkpoints)")
      ->type_name("auto|none|PATH");
}

DTRAIN_COMMAND("simulate", 40, AddSimulateCommand);

}  // namespace dtrain
