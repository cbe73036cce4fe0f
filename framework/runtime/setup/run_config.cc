#include "framework/runtime/setup/run_config.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"
#include "framework/device/cuda/module.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using config::Reader;

// Of every strategy that plans by time.
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
  const std::string replan = reader.String("replan", "none")
                                 .OneOf({"none", "epoch"})
                                 .Help(
                                     "epoch: plan anew at the end of an epoch when computing or "
                                     "the sums take 20 % more or less time than planned");
  run.replan = replan == "epoch";
}

}  // namespace

void ReadStrategyKeys(Reader reader, Strategy& strategy, RunConfig& run) {
  strategy.Configure(reader);
  if (strategy.PlansByTime()) ReadPlanning(reader, run);
  if (strategy.synchronous()) return;
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

void ReadStrategy(Reader root, RunConfig& run) {
  Reader reader = root.Section("strategy", "how the workers exchange gradients");
  run.strategy_name =
      static_cast<std::string>(reader.String("name", "allreduce")
                                   .OneOf(StrategyRegistry::Names())
                                   .Help("name of a strategy; dtrain list strategies shows them"));
  std::shared_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", run.strategy_name).make();
  ReadStrategyKeys(reader, *strategy, run);
  run.strategy = std::move(strategy);
}

// What would do: "ps_ssp takes topk", "gdtopk goes with gssp".
std::string HintFor(const RunConfig& run) {
  const std::vector<std::string> strategies = StrategiesOf(run.compress.name);
  const std::vector<std::string> others = CompressorsOf(*run.strategy);
  std::string hint;
  if (!others.empty()) hint = fmt::format("{} takes {}; ", run.strategy_name, Join(others));
  if (strategies.empty()) return hint + "no strategy takes " + run.compress.name + " yet";
  return fmt::format("{}{} goes with {}", hint, run.compress.name, Join(strategies));
}

// Asynchronous workers are at different steps, and epochs are counted of all together.
void CheckDensities(Reader reader, Reader strategy, const RunConfig& run) {
  if (run.strategy->synchronous()) return;
  const auto refuse = [&](const std::string& key) {
    reader.AddError(key,
                    fmt::format("strategy '{}' has one density all the time", run.strategy_name),
                    "leave it out, or take a synchronous strategy", {strategy.At("name")});
  };
  if (!run.compress.density_warmup.empty()) refuse("density_warmup");
  if (run.compress.dense_steps > 0) refuse("dense_steps");
}

// The workers take over the solver's momentum, and its clipping, which is for what goes into momentum.
void TakeMomentum(Reader root, Reader reader, RunConfig& run) {
  if (!run.strategy->synchronous() || !run.compress.compressor->corrects_momentum()) return;
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
  const std::string why = compress.rounds() ? "who rounds their sums goes by their sizes"
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
  if (run.strategy->synchronous() && !run.compress.rounds()) {
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
  if (run.sync_batch_norm && !run.strategy->synchronous()) {
    root.AddError("batch_norm",
                  fmt::format("batch_norm 'sync' needs workers that take their steps together; in "
                              "'{}' each takes its own",
                              run.strategy_name),
                  "batch_norm: local, or a synchronous strategy (allreduce, ps_bsp)",
                  {root.Section("strategy").At("name")});
  }
}

void ReadMachine(Reader root, RunConfig& run) {
  run.collective =
      static_cast<std::string>(root.String("collective", "ordered")
                                   .OneOf(CollectiveNames())
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
  run.device = static_cast<std::string>(
      root.String("device", "auto")
          .OneOf({"auto", "cpu", "cuda"})
          .Help("device to train on: cpu, or cuda for a GPU; auto takes the CPU"));
  run.precision = static_cast<std::string>(
      root.String("precision", "fp32")
          .OneOf({"fp32", "tf32", "bf16"})
          .Help("numbers that large products multiply, all else stays fp32; bf16: convolutions on "
                "a CPU with AMX, all products on a GPU; tf32: all products on a GPU"));
  run.threads = root.Int("threads", 0)
                    .Min(0)
                    .Max(4096)
                    .Help("threads per rank; 0: the cores of the node divided by its ranks");
  run.seed = static_cast<uint64_t>(static_cast<int64_t>(root.Int("seed", 1).Min(0).Help(
      "random seed for initial weights, shuffling, augmentation and dropout")));
}

// Whether a target is an accuracy, a perplexity or a loss follows from the model (ReadModel).
void ReadStop(Reader root, Reader evaluate, RunConfig& run) {
  Reader stop = root.Section("stop", "when the run may end before its last epoch");
  run.stop.target =
      stop.Number("target", 0)
          .Min(0)
          .Help(
              "end at the first evaluation with this accuracy (0.98); of sentences with this "
              "perplexity, of a model without an accuracy with this loss, or a lower one; 0: none");
  run.stop.patience = stop.Int("patience", 0)
                          .Min(0)
                          .Help("end when N evaluations in a row were no better; 0: never");
  if (!run.stop.any() || run.evaluate_every_epochs > 0 || run.evaluate_every_steps > 0) return;
  stop.AddError(run.stop.target > 0 ? "target" : "patience",
                "nothing is evaluated before the end, so nothing can end the run early",
                "set evaluate.every_epochs or evaluate.every_steps",
                {evaluate.At("every_epochs"), evaluate.At("every_steps")});
}

void ReadRecords(Reader root, RunConfig& run) {
  Reader evaluate = root.Section("evaluate");
  run.evaluate_every_epochs =
      evaluate.Int("every_epochs", 1)
          .Min(0)
          .Help("evaluate every N epochs, and at the end; 0: not by epochs");
  run.evaluate_every_steps =
      evaluate.Int("every_steps", 0).Min(0).Help("evaluate every N steps as well; 0: not by steps");
  ReadStop(root, evaluate, run);
  Reader checkpoint = root.Section("checkpoint");
  run.checkpoint.every_epochs =
      checkpoint.Int("every_epochs", 1).Min(0).Help("write a checkpoint every N epochs; 0: never");
  run.checkpoint.every_steps =
      checkpoint.Int("every_steps", 0).Min(0).Help("write a checkpoint every N steps; 0: never");
  run.checkpoint.keep =
      checkpoint.Int("keep", 2).Min(1).Help("number of newest checkpoints to keep");
  run.checkpoint.keep_best =
      checkpoint.Bool("keep_best", false)
          .Help(
              "keep the weights of the best evaluation in checkpoints/best.h5: the test at the end "
              "is theirs, and predict, eval and export take them");
  const std::string other_data =
      checkpoint.String("other_data", "refuse")
          .OneOf({"refuse", "take"})
          .Help(
              "what a resume does where classes, columns, mean, deviation or samples are not those "
              "that the checkpoint was trained on: refuse them, or take them with a warning");
  run.checkpoint.takes_other_data = other_data == "take";
  if (run.checkpoint.keep_best && run.data.source && !run.data.source->has_validation()) {
    checkpoint.AddError("keep_best",
                        "which weights are best is told by a validation split, and there is none",
                        "data.validation: 0.1 sets a share of the training samples aside",
                        {root.Section("data").At("validation"), root.Section("data").At("name")});
  }
  run.timeline =
      root.Bool("timeline", false).Help("write timeline.json, for chrome://tracing and Perfetto");
  run.tensorboard = root.Bool("tensorboard", false)
                        .Help("write event files for TensorBoard to the run folder's tensorboard/");
  run.statistics_every =
      root.Section("gradients", "a study of worker 0's gradients")
          .Int("every", 0)
          .Min(0)
          .Help(
              "write to gradients.jsonl what every N-th step's gradient is like, and what the "
              "compressor leaves of it; 0: never");
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
  run.plan = static_cast<std::string>(
      root.String("plan", "auto").Help("execution plan: auto, or the plan.json of another run"));
  if (run.plan != "auto" && !fs::is_regular_file(run.plan)) {
    root.AddError("plan", WhyNoFile(run.plan, "there is no plan file '" + run.plan + "'"),
                  "auto, or the path of a file");
  }
}

void ReadOutput(Reader root, const std::string& config_file, RunConfig& run) {
  const std::string output =
      root.String("output", "runs/{config}-{time}")
          .Help(
              "run folder; {config} stands for the config file's name, {time} for the start "
              "time (with -2, -3, ... if the folder exists)");
  run.output_has_time = output.find("{time}") != std::string::npos;
  try {
    run.output = ExpandOutput(output, config_file, TimeStamp());
  } catch (const ConfigError& error) {
    root.AddError("output", error.what(), error.hint());
  }
}

// What no machine could run is said here, where it has a place in the file.  That this one has no
// GPU may not matter: configs are checked and submitted where they do not run.
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

// The dump has one line a key, so the top-level `output` is the line that begins with it.
RunConfig Read(config::Document& document, bool with_model, const std::string& model_yaml = "",
               const RunConfig* before = nullptr) {
  RunConfig run;
  run.model_yaml = model_yaml;
  Reader root = document.root();
  if (with_model) ReadInputs(root, document.file_name(), before, run);
  ReadLength(root, run);
  run.solver = ReadSolverConfig(root.Section("solver", "the optimizer"));
  ReadStrategy(root, run);
  ReadCompress(root, run);
  ReadBatchNorm(root, run);
  ReadMachine(root, run);
  if (with_model) CheckDevice(root, run);  // a simulation without one computes nothing
  ReadRecords(root, run);
  ReadPlanKeys(root, run);
  ReadOutput(root, document.file_name(), run);
  CheckTogether(root, run);
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
  RunConfig run = Read(document, true, before.model_yaml, &before);
  run.model_file = before.model_file;  // not the name: where it was found
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
