#include "framework/setup/run_config.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "framework/comm/device_collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"
#include "framework/device/cpu/threads.h"
#include "framework/device/cuda/module.h"

namespace dtrain {

namespace fs = std::filesystem;
using config::Reader;

namespace {

// The strategy, and the place of its servers, decide which workers may die.
void CheckDeaths(Reader cluster, Reader strategy, const RunConfig& run) {
  const std::vector<Death>& deaths = run.cluster.deaths;
  if (deaths.empty()) return;
  const std::string why = run.strategy->StopsAtDeath();
  if (!why.empty()) {
    cluster.AddError(
        "deaths", fmt::format("a death would stop strategy '{}': {}", run.strategy_name, why),
        fmt::format("{} go on without a dead worker", Join(StrategiesThatOutliveWorkers())),
        {strategy.At("name"), strategy.At("pull_timeout")});
    return;
  }
  const int per_node = run.cluster.per_node();
  Placement placement = run.strategy->Place(static_cast<int>(run.workers));
  if (placement.nodes() > 0) {
    if (run.workers % per_node != 0) return;  // CheckTogether reports this
    placement.node_of = NodesInOrder(static_cast<int>(run.workers), per_node);
  }
  std::vector<Reader> places = cluster.List("deaths");
  for (const DeathError& error : CheckDeaths(deaths, placement, per_node)) {
    places[error.index].AddError(
        "", error.what, error.hint,
        {strategy.At("name"), strategy.At("servers"), strategy.At("placement"),
         cluster.At("workers"), cluster.At("per_node")});
  }
}

// Only our own collectives can sum numbers of 16 bits.
void CheckRoundedSums(Reader root, const RunConfig& run) {
  if (!run.compress.rounds() || !run.strategy->traits().lockstep || SumsRounded(run.collective))
    return;
  root.AddError("collective",
                fmt::format("collective '{}' sums floats of 32 bits, and compressor '{}' sends 16",
                            run.collective, run.compress.name),
                "collective: ordered, or compress: none",
                {root.Section("compress").At("name"), root.Section("strategy").At("name")});
}

// Returns the keys that decide the number of training samples.  An error in any other key does not change that number.
std::vector<config::KeyRef> KeysOfSize(const Reader& data) {
  std::vector<config::KeyRef> keys;
  for (const char* key :
       {"name", "root", "limit", "validation", "train", "train_samples", "train_images",
        "train_labels", "train_source", "train_target", "test", "test_images", "test_share",
        "header", "data_set", "max_length", "tokenized"}) {
    keys.push_back(data.At(key));
  }
  return keys;
}

// Reads the keys of every strategy that is planned by time.
void ReadPlanning(Reader reader, RunConfig& run) {
  run.profile = static_cast<std::string>(
      reader.String("profile", "measure")
          .Help("what the schedule is planned by: measure (20 steps and the collective, before the "
                "first step), or the path of a model profile that has their times (profile.json of "
                "another run)"));
  if (run.profile != "measure" && !fs::is_regular_file(run.profile)) {
    reader.AddError("profile", WhyNoFile(run.profile, "there is no profile '" + run.profile + "'"),
                    "measure, or the path of a file");
  }
}

}  // namespace

void ReadStrategyKeys(Reader reader, Strategy& strategy, RunConfig& run) {
  strategy.Configure(reader);
  if (strategy.PlansByTime()) ReadPlanning(reader, run);
  if (strategy.traits().lockstep) return;
  run.record =
      reader.Bool("record", false).Help("record the order of events for dtrain simulate --replay");
}

void ReadSelectionExchange(Reader reader, CompressConfig& compress) {
  compress.exchange = static_cast<std::string>(
      reader.String("exchange", "gather")
          .OneOf(SparseCollectiveNames())
          .Help("all-reduce: how the workers' selections are summed: gather "
                "(all of them), gtopk (the largest sums, by a tree) or "
                "oktopk (the largest sums, each by the owner of its region)"));
}

namespace {

// Returns which strategies have a key that another one lacks: "only ps_ssp and ps_dssp have it"; "" if none has it.
std::string StrategiesWith(const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : StrategyRegistry::All()) {
    config::Document document = config::Document::Empty();
    RunConfig unused;
    ReadStrategyKeys(document.root(), *entry.make(), unused);
    const auto keys = document.Keys();
    if (std::ranges::find(keys, key, &config::KeyHelp::path) != keys.end()) names.push_back(name);
  }
  if (names.empty()) return "";
  const std::string last = names.back();
  names.pop_back();
  if (names.empty()) return fmt::format("only {} has it", last);
  return fmt::format("only {} and {} have it", Join(names), last);
}

void ReadStrategy(Reader root, RunConfig& run) {
  Reader reader = root.Section("strategy", "how the workers exchange gradients");
  run.strategy_name =
      static_cast<std::string>(reader.String("name", "allreduce")
                                   .OneOf(StrategyRegistry::Names())
                                   .NotOf("collective", AllCollectiveNames())
                                   .NotOf("compress", CompressorRegistry::Names())
                                   .Help("name of a strategy; dtrain list strategies shows them"));
  std::shared_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", run.strategy_name).make();
  ReadStrategyKeys(reader, *strategy, run);
  reader.ExplainUnknown(StrategiesWith);
  run.strategy = std::move(strategy);
}

// Returns what would work: "ps_ssp takes topk", "gdtopk goes with gssp".
std::string HintFor(const RunConfig& run) {
  const std::vector<std::string> strategies = StrategiesOf(run.compress.name);
  const std::vector<std::string> others = CompressorsOf(*run.strategy);
  std::string hint;
  if (!others.empty()) hint = fmt::format("{} takes {}; ", run.strategy_name, Join(others));
  if (strategies.empty()) return hint + "no strategy takes " + run.compress.name + " yet";
  return fmt::format("{}{} goes with {}", hint, run.compress.name, Join(strategies));
}

// Refuses densities that change: asynchronous workers are at different steps, and epochs count the steps of all of
// them.
void CheckDensities(Reader reader, Reader strategy, const RunConfig& run) {
  if (run.strategy->traits().lockstep) return;
  const auto refuse = [&](const std::string& key) {
    reader.AddError(key,
                    fmt::format("strategy '{}' has one density all the time", run.strategy_name),
                    "leave it out, or take a synchronous strategy", {strategy.At("name")});
  };
  if (!run.compress.density_warmup.empty()) refuse("density_warmup");
  if (run.compress.dense_steps > 0) refuse("dense_steps");
}

// Moves the solver's momentum to the workers, and also its clipping, since that acts on the input of momentum.
void TakeMomentum(Reader root, Reader reader, RunConfig& run) {
  if (!run.strategy->traits().lockstep || !run.compress.compressor->corrects_momentum()) return;
  Solver::WithoutMomentum without = run.solver.solver->TakeMomentum();
  if (without.solver == nullptr) {
    reader.AddError(
        "name",
        fmt::format("compressor '{}' takes over the momentum of plain sgd; solver '{}' has "
                    "another kind",
                    run.compress.name, run.solver.name),
        "solver: sgd without nesterov, or momentum_correction: false",
        {"momentum_correction", root.Section("solver").At("name"),
         root.Section("solver").At("nesterov"), root.Section("strategy").At("name")});
    return;
  }
  run.compress.momentum = without.momentum;
  run.solver.solver = std::move(without.solver);
  std::swap(run.compress.clip_norm, run.solver.clip_norm);
  const bool clips = run.compress.clip_norm > 0;
  run.notes.push_back(fmt::format(
      "{}: each worker keeps sgd's momentum ({}){} itself, before its selection; the solver runs "
      "without",
      run.compress.name, run.compress.momentum,
      clips ? fmt::format(" and clips its own gradient (to clip_norm {} / sqrt(workers))",
                          run.compress.clip_norm)
            : ""));
}

std::string WhyBitsFollowBuckets(const RunConfig& run) {
  const CompressConfig& compress = run.compress;
  const bool gathers = compress.exchange == "gather";
  const std::string why = compress.rounds() ? "which rank rounds a sum depends on its size"
                          : gathers         ? "entries are selected from each bucket"
                                            : compress.exchange + " keeps the largest sums of each";
  const std::string others = compress.rounds() ? ""
                             : gathers         ? "compress.scope layer or model, or "
                                               : "compress.scope model, or ";
  return fmt::format(
      "{} measures its buckets before each run, and {}: two runs may differ; with {}the plan of "
      "another "
      "run (plan: FILE) they do not",
      run.strategy_name, why, others);
}

void ReadCompress(Reader root, RunConfig& run) {
  Reader reader = root.Section("compress", "which entries of a gradient are sent");
  run.compress = ReadCompressConfig(reader);
  if (!run.compress.on()) return;
  if (run.strategy->traits().lockstep && run.compress.sends_entries()) {
    ReadSelectionExchange(reader, run.compress);
  }
  if (run.strategy->PlansByTime() && run.compress.FollowsBuckets()) {
    run.warnings.push_back(WhyBitsFollowBuckets(run));
  }
  Reader strategy = root.Section("strategy");
  CheckDensities(reader, strategy, run);
  if (run.strategy->Takes(*run.compress.compressor)) return TakeMomentum(root, reader, run);
  const bool none = CompressorsOf(*run.strategy).empty();
  reader.AddError("name",
                  fmt::format("strategy '{}' takes no compressor{}", run.strategy_name,
                              none ? "" : fmt::format(" '{}'", run.compress.name)),
                  HintFor(run), {strategy.At("name")});
}

void ReadLength(Reader root, RunConfig& run) {
  run.batch = root.Int("batch", 64)
                  .Min(1)
                  .Help("global batch size: samples per step, summed over all workers");
  run.accumulate =
      root.Int("accumulate", 1)
          .Min(1)
          .Help(
              "gradient accumulation: micro-batches per step on each worker; batch norm "
              "uses the statistics of each micro-batch");
  run.epochs = root.Int("epochs", 10).Min(1).Help("number of passes over the training set");
  run.max_steps = root.Int("max_steps", 0).Min(0).Help("stop after this many steps; 0: no limit");
}

void ReadBatchNorm(Reader root, RunConfig& run) {
  const std::string mode = root.String("batch_norm", "local")
                               .OneOf({"local", "sync"})
                               .Help(
                                   "local: each worker uses statistics of its own samples; sync: "
                                   "of all workers' samples");
  run.sync_batch_norm = mode == "sync";
  if (run.sync_batch_norm && !run.strategy->traits().equal_weights()) {
    root.AddError("batch_norm",
                  fmt::format("batch_norm 'sync' needs workers that take their steps together; in "
                              "'{}' each takes its own",
                              run.strategy_name),
                  "batch_norm: local, or a synchronous strategy (allreduce, ps_bsp)",
                  {root.Section("strategy").At("name")});
  }
}

// Reads the file of measured costs.  A recorded run needs none, since a replay takes no times from it.
void ReadCosts(Reader root, Reader cluster, const std::string& config_file, bool recorded,
               RunConfig& run) {
  const std::string name = static_cast<std::string>(
      cluster.String("compress_costs", "none")
          .Help("simulation and dtrain plan: measured seconds of the compressor, a file of dtrain "
                "bench topk --costs or its name in configs/costs; none: passes over memory at "
                "memory_gbyte_s"));
  if (name == "none" || recorded) return;
  run.costs_where = cluster.Where("compress_costs");
  const fs::path file = LocateCosts(name, config_file);
  if (file.empty()) {
    return cluster.AddError("compress_costs", "there is no file of compressor costs '" + name + "'",
                            CostsHint(name, config_file));
  }
  try {
    const CompressCosts costs = ReadCompressCosts(file);
    run.costs_device = costs.device;
    const std::string compressor = run.compress.cost_name();
    if (const CompressCost* const cost = costs.Find(compressor)) {
      run.compress_cost = *cost;
    } else if (!compressor.empty()) {
      cluster.AddError(
          "compress_costs",
          fmt::format("{} has no costs of compressor '{}'; it has those of {}", file.string(),
                      compressor, costs.Names()),
          fmt::format("measure them: dtrain bench topk --compressors {} --costs FILE", compressor),
          {root.Section("compress").At()});
    }
  } catch (const Error& error) {
    cluster.AddError("compress_costs", error.what(),
                     "dtrain bench topk --costs FILE writes such a file");
  }
}

void ReadMachine(Reader root, const std::string& config_file, bool recorded, RunConfig& run) {
  run.collective =
      static_cast<std::string>(root.String("collective", "ordered")
                                   .OneOf(AllCollectiveNames())
                                   .NotOf("strategy", StrategyRegistry::Names())
                                   .Help("algorithm that sums gradients over the workers"));
  run.overlap_buckets =
      root.Bool("overlap_buckets", false)
          .Help(
              "true: all-reduce of the next bucket begins while that of the one before is under "
              "way; false: one bucket at a time");
  run.window =
      root.Bool("window", true)
          .Help(
              "ranks of one node read each other's gradients and weights in shared memory; "
              "false: they are copied between them, as messages of MPI");
  Reader cluster = root.Section("cluster", "the workers and their machines");
  run.workers =
      cluster.Int("workers", 1).Min(1).Help("number of worker processes; --workers overrides it");
  run.workers_given = cluster.Has("workers");
  run.cluster = ReadCluster(cluster, static_cast<int>(run.workers));
  ReadCosts(root, cluster, config_file, recorded, run);
  run.device = static_cast<std::string>(
      root.String("device", "auto")
          .OneOf({"auto", "cpu", "cuda"})
          .Help("device to train on: cpu, or cuda for a GPU; auto takes a GPU that is there"));
  run.precision = static_cast<std::string>(
      root.String("precision", "fp32")
          .OneOf({"fp32", "tf32", "bf16", "fp16"})
          .Help("number format of matrix products and convolutions; weights, gradients and solver "
                "stay fp32; bf16: convolutions on a CPU with AMX, all products on a GPU; tf32: all "
                "products on a GPU; fp16: the same with a scaled loss, for one worker"));
  run.threads = root.Int("threads", 0)
                    .Min(0)
                    .Max(kThreadsMost)
                    .Help(
                        "threads per rank; 0: OMP_NUM_THREADS, else the cores of the node divided "
                        "by its ranks");
  run.seed = static_cast<uint64_t>(static_cast<int64_t>(root.Int("seed", 1).Min(0).Help(
      "random seed for initial weights, shuffling, augmentation and dropout")));
}

void ReadRecords(Reader root, RunConfig& run) {
  Reader evaluate = root.Section("evaluate");
  run.evaluate = ReadEvaluateConfig(evaluate);
  run.stop = ReadStopConfig(root.Section("stop", "when the run may end before its last epoch"),
                            run.evaluate, evaluate);
  Reader checkpoint = root.Section("checkpoint");
  run.checkpoint = ReadCheckpointConfig(checkpoint);
  if (run.checkpoint.keep_best && run.data.source && !run.data.source->has_validation()) {
    checkpoint.AddError("keep_best",
                        "a validation split must show which weights are best, and there is none",
                        "data.validation: 0.1 sets a share of the training samples aside",
                        {root.Section("data").At("validation"), root.Section("data").At("name")});
  }
  run.timeline =
      root.Bool("timeline", false).Help("write timeline.json, for chrome://tracing and Perfetto");
  run.tensorboard = root.Bool("tensorboard", false)
                        .Help("write event files for TensorBoard to the run folder's tensorboard/");
  run.statistics_every = root.Section("gradients", "statistics of worker 0's gradients")
                             .Int("every", 0)
                             .Min(0)
                             .Help(
                                 "write statistics of every N-th step's gradient, and of what the "
                                 "compressor leaves of it, to gradients.jsonl; 0: never");
  run.log_first_steps = root.Int("log_first_steps", 20)
                            .Min(0)
                            .Help("log every one of the first N steps to metrics.jsonl");
  run.log_every_steps =
      root.Int("log_every_steps", 100).Min(1).Help("afterwards, log every N-th step");
}

void ReadPlanKeys(Reader root, RunConfig& run) {
  run.stall_seconds = root.Number("stall_seconds", 0)
                          .Min(0)
                          .Max(1e6)
                          .Help(
                              "end the run when a rank waits longer than this; 0: from measured "
                              "step times, at least 30, of one rank 60");
  run.plan = static_cast<std::string>(root.String("plan", "auto")
                                          .Help("execution plan: auto, measure (auto, but on a GPU "
                                                "the fastest of cuDNN's engines), or "
                                                "the plan.json of another run"));
  if (run.plan_is_file() && !fs::is_regular_file(run.plan)) {
    root.AddError("plan", WhyNoFile(run.plan, "there is no plan file '" + run.plan + "'"),
                  "auto, measure, or the path of a file");
  }
}

void ReadOutput(Reader root, const std::string& config_file, RunConfig& run) {
  const std::string output =
      root.String("output", "runs/{config}-{time}")
          .Help(
              "run folder; {config} stands for the config file's name, {time} for the start "
              "time (with -2, -3, ... if the folder exists)");
  if (output.empty()) {
    return root.AddError("output", "output: the name of the run folder is empty",
                         "give a name, or leave the key out");
  }
  run.output_has_time = output.find("{time}") != std::string::npos;
  try {
    run.output = ExpandOutput(output, config_file, TimeStamp());
  } catch (const ConfigError& error) {
    root.AddError("output", error.what(), error.hint());
  }
}

// Reports a device that no machine with this build could use, with its place in the file.  A GPU that only this machine
// lacks is a warning, since configs are also checked and submitted where they do not run.
void CheckDevice(Reader root, RunConfig& run) {
  if (run.device != "cuda") return;
  const auto lack = WhyNoCuda();
  if (!lack) return;
  if (lack->of_the_machine) {
    run.warnings.push_back("device 'cuda' is not available on this machine: " + lack->why);
  } else {
    root.AddError("device", "device 'cuda' is not available: " + lack->why, lack->hint);
  }
}

// The loss scale and the steps that overflow are known only to the GPU of one worker (device/loss_scale.h).
void CheckScaledLoss(Reader root, const RunConfig& run) {
  if (run.precision != "fp16") return;
  const auto refuse = [&root](Reader section, const char* key, const std::string& what) {
    root.AddError("precision",
                  "precision fp16 is for one worker whose gradients stay on its GPU: " + what,
                  "precision: bf16", {section.At(key)});
  };
  Reader cluster = root.Section("cluster"), strategy = root.Section("strategy");
  if (run.workers > 1) refuse(cluster, "workers", fmt::format("workers is {}", run.workers));
  if (run.compress.on()) {
    refuse(root.Section("compress"), "name", "compress.name sends them through the host");
  }
  if (!run.strategy->traits().sums_gradients()) {
    refuse(strategy, "name", fmt::format("{} exchanges no gradients", run.strategy_name));
  }
  if (run.accumulate > 1) refuse(root, "accumulate", "accumulate adds them up first");
  if (run.statistics_every > 0) {
    refuse(root.Section("gradients"), "every", "gradients.every reads them on the host");
  }
  const auto delays = [&](const char* key) {
    refuse(cluster, key, fmt::format("cluster.{} delays them", key));
  };
  if (run.cluster.step_seconds > 0) delays("step_seconds");
  if (run.cluster.slowdown != std::vector{1.0}) delays("slowdown");
  if (run.cluster.jitter > 0) delays("jitter");
}

// Notes the errors of keys that do not fit together, once all are read.
void CheckTogether(Reader root, RunConfig& run) {
  Reader cluster = root.Section("cluster");
  Reader strategy = root.Section("strategy");
  const config::KeyRef workers = cluster.At("workers");
  if (run.batch < run.workers) {
    root.AddError("batch",
                  fmt::format("batch {} is smaller than the number of workers ({}, {})", run.batch,
                              run.workers, cluster.Line("workers")),
                  "the workers share the batch: take a larger one, or fewer workers", {workers});
  }
  if (run.accumulate > 1 && run.batch >= run.workers && run.batch / run.workers < run.accumulate) {
    root.AddError("accumulate",
                  fmt::format("accumulate {} cuts a worker's share of {} into parts "
                              "without a sample (batch {}, workers {})",
                              run.accumulate, Counted(run.batch / run.workers, "sample"), run.batch,
                              run.workers),
                  "", {"batch", workers});
  }
  for (const Strategy::KeyError& error : run.strategy->Check(static_cast<int>(run.workers))) {
    if (error.warning) {
      run.warnings.push_back(fmt::format("{}: {}", strategy.Where(error.key), error.what));
    } else {
      std::vector<config::KeyRef> by = {workers};
      by.insert(by.end(), error.by.begin(), error.by.end());
      strategy.AddError(error.key, error.what, error.hint, by);
    }
  }
  const bool nodes = run.strategy && run.strategy->Place(1).nodes() > 0;
  if (nodes && run.cluster.per_node_given && run.workers % run.cluster.per_node() != 0) {
    cluster.AddError(
        "per_node",
        fmt::format("{} cannot be shared out to nodes of {} ({})", Counted(run.workers, "worker"),
                    run.cluster.per_node(), run.strategy_name),
        "cluster.per_node must divide the number of workers", {"workers", strategy.At("name")});
  }
  CheckDeaths(cluster, strategy, run);
  CheckRoundedSums(root, run);
  const int64_t samples = run.data.source ? run.data.source->size(Split::kTrain) : run.batch;
  if (run.batch > samples) {
    Reader data = root.Section("data");
    std::string why;  // the keys that reduce their number
    for (const char* key : {"limit", "train_samples"}) {
      if (data.Has(key)) why += fmt::format(" (data.{}, {})", key, data.Line(key));
    }
    root.AddError("batch",
                  fmt::format("batch {} is more than the {} training samples of {}{}", run.batch,
                              samples, run.data.name, why),
                  fmt::format("take a batch of {} or less, or more data", samples),
                  KeysOfSize(data));
  }
  if (run.solver.warmup_epochs > static_cast<double>(run.epochs)) {
    root.Section("solver").AddError(
        "warmup_epochs",
        fmt::format("warm-up of {} epochs is longer than the run ({} epochs, {})",
                    run.solver.warmup_epochs, run.epochs, root.Line("epochs")),
        "", {root.At("epochs")});
  }
}

// Reads the whole document.  `model_yaml` is the model's text if it is known.  The data are taken from `before` unless
// it is null.
RunConfig Read(config::Document& document, bool with_model, const std::string& model_yaml = "",
               const RunConfig* before = nullptr) {
  RunConfig run;
  Reader root = document.root();
  if (with_model) {
    run.model = ReadModelConfig(root.Section("model", "the model to train"), document.file_name(),
                                model_yaml);
    run.data = ReadDataConfig(root.Section("data", "the data set to train on"),
                              before != nullptr ? &before->data : nullptr);
    run.weights = ReadWeightsConfig(
        root.Section("weights", "what the run begins with instead of drawn weights"));
  }
  ReadLength(root, run);
  run.solver = ReadSolverConfig(root.Section("solver", "the optimizer"));
  ReadStrategy(root, run);
  ReadCompress(root, run);
  ReadBatchNorm(root, run);
  const bool recorded = with_model && before == nullptr && !model_yaml.empty();
  ReadMachine(root, document.file_name(), recorded, run);
  if (with_model) CheckDevice(root, run);  // a simulation of a profile computes nothing
  ReadRecords(root, run);
  ReadPlanKeys(root, run);
  ReadOutput(root, document.file_name(), run);
  CheckTogether(root, run);
  if (with_model) CheckScaledLoss(root, run);
  document.Finish();
  if (run.data.problem) std::rethrow_exception(run.data.problem);
  run.effective_yaml = document.EffectiveYaml();
  run.effective_json = document.EffectiveJson();
  run.config_sha256 = Sha256::Of(document.EffectiveYaml("output"));
  return run;
}

}  // namespace

RunConfig ReadRunConfig(config::Document& document) { return Read(document, true); }

RunConfig ReadRunConfig(config::Document& document, const std::string& model_yaml) {
  return Read(document, true, model_yaml);
}

RunConfig ReadRunConfig(config::Document& document, const RunConfig& before) {
  RunConfig run = Read(document, true, before.model.yaml, &before);
  run.model.file = before.model.file;  // the file that was found; `run` has the name
  return run;
}

RunConfig ReadGhostConfig(config::Document& document) { return Read(document, false); }

std::string ExpandOutput(const std::string& output, const std::string& config_file,
                         const std::string& time) {
  std::string expanded;
  for (size_t i = 0; i < output.size(); ++i) {
    const size_t close = output[i] == '{' ? output.find('}', i) : std::string::npos;
    if (close == std::string::npos) {
      expanded += output[i];
      continue;
    }
    const std::string word = output.substr(i + 1, close - i - 1);
    if (word != "config" && word != "time") {
      throw ConfigError("output has no placeholder {" + word + "}", "allowed: {config}, {time}");
    }
    expanded += word == "time" ? time : fs::path(config_file).stem().string();
    i = close;
  }
  return expanded;
}

std::string TimeStamp() {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

}  // namespace dtrain
