#include "framework/runtime/setup/run_config.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "framework/comm/collective.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "framework/data/limit.h"
#include "framework/device/cuda/module.h"
#include "framework/runtime/setup/locate_model.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using config::Reader;

void ReadModelKeys(Reader root, const std::string& config_file, RunConfig& run) {
  Reader reader = root.Section("model", "the net");
  run.model = static_cast<std::string>(
      reader.String("name", "").Required().Help("a file of configs/models, or a path"));
  if (run.model.empty()) return;
  if (!run.model_yaml.empty()) {
    run.model_file = run.model;
    return;
  }
  run.model_file = LocateModel(run.model, config_file).string();
  if (!run.model_file.empty()) {
    run.model_yaml = ReadFile(run.model_file);
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, path] : NamedModels(config_file)) names.push_back(name);
  reader.Mistake("name", "there is no model '" + run.model + "'",
                 names.empty() ? "give the path of a model file" : SuggestName(run.model, names));
}

void ReadData(Reader root, RunConfig& run) {
  Reader reader = root.Section("data", "what the net learns from");
  run.data.name = static_cast<std::string>(reader.String("name", "")
                                               .Required()
                                               .OneOf(DatasetRegistry::Names())
                                               .Help("see dtrain data list"));
  run.data.root = static_cast<std::string>(
      reader.String("root", "")
          .Help("folder that holds the set's folder; \"\": $DTRAIN_DATA, then the cache"));
  const int64_t limit =
      reader.Int("limit", 0).Min(0).Help("take the first so many samples of each split; 0: all");
  if (run.data.name.empty()) return;
  std::shared_ptr<DatasetSource> source = DatasetRegistry::Get("data set", run.data.name).make();
  source->Configure(reader);
  run.data.source = std::move(source);
  if (limit > 0) run.data.source = LimitSource(run.data.source, limit);
}

void ReadStrategy(Reader root, RunConfig& run) {
  Reader reader = root.Section("strategy", "how the workers exchange gradients");
  run.strategy_name = static_cast<std::string>(
      reader.String("name", "allreduce").OneOf(StrategyRegistry::Names()).Help("see dtrain list"));
  std::shared_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", run.strategy_name).make();
  strategy->Configure(reader);
  if (!strategy->synchronous()) {
    run.record = reader.Bool("record", false)
                     .Help("write the order of events, for dtrain simulate --replay");
  }
  run.strategy = std::move(strategy);
}

void ReadLength(Reader root, RunConfig& run) {
  run.batch = root.Int("batch", 64).Min(1).Help("samples of a step, over all workers");
  run.accumulate = root.Int("accumulate", 1)
                       .Min(1)
                       .Help(
                           "parts of a share computed one by one, in the memory of one; batch norm "
                           "sees each alone");
  run.epochs = root.Int("epochs", 10).Min(1).Help("passes over the training set");
  run.max_steps =
      root.Int("max_steps", 0).Min(0).Help("end earlier, after so many steps; 0: do not");
}

void ReadBatchNorm(Reader root, RunConfig& run) {
  const std::string mode =
      root.String("batch_norm", "local")
          .OneOf({"local", "sync"})
          .Help("statistics of a worker's own samples, or of those of all workers");
  run.sync_batch_norm = mode == "sync";
  if (run.sync_batch_norm && !run.strategy->synchronous()) {
    root.Mistake("batch_norm",
                 fmt::format("batch_norm 'sync' needs workers that take their steps together; in "
                             "'{}' each takes its own",
                             run.strategy_name),
                 "batch_norm: local, or a synchronous strategy (allreduce, ps_bsp)");
  }
}

void ReadMachine(Reader root, RunConfig& run) {
  run.collective = static_cast<std::string>(root.String("collective", "ordered")
                                                .OneOf(CollectiveNames())
                                                .Help("how gradients are summed"));
  Reader cluster = root.Section("cluster", "who takes part");
  run.workers = cluster.Int("workers", 1).Min(1).Help("processes that train, as --workers");
  run.workers_given = cluster.Has("workers");
  run.cluster = ReadCluster(cluster, static_cast<int>(run.workers));
  run.device = static_cast<std::string>(root.String("device", "auto")
                                            .OneOf({"auto", "cpu", "cuda"})
                                            .Help("what computes; auto takes the best there is"));
  run.precision = static_cast<std::string>(
      root.String("precision", "fp32")
          .OneOf({"fp32", "bf16"})
          .Help("factors of convolutions; bf16 needs AMX, sums and all else stay fp32"));
  run.threads = root.Int("threads", 0)
                    .Min(0)
                    .Max(4096)
                    .Help("of each rank; 0: the node's cores over its ranks");
  run.seed = static_cast<uint64_t>(static_cast<int64_t>(
      root.Int("seed", 1).Min(0).Help("decides initial weights, order, augmentation and dropout")));
}

void ReadRecords(Reader root, RunConfig& run) {
  run.evaluate_every_epochs = root.Section("evaluate")
                                  .Int("every_epochs", 1)
                                  .Min(0)
                                  .Help("test after so many epochs; 0: at the end only");
  Reader checkpoint = root.Section("checkpoint");
  run.checkpoint.every_epochs = checkpoint.Int("every_epochs", 1).Min(0).Help("0: not by epochs");
  run.checkpoint.every_steps = checkpoint.Int("every_steps", 0).Min(0).Help("0: not by steps");
  run.checkpoint.keep = checkpoint.Int("keep", 2).Min(1).Help("newest checkpoints that stay");
  run.timeline =
      root.Bool("timeline", false).Help("write timeline.json, for chrome://tracing and Perfetto");
  run.log_first_steps =
      root.Int("log_first_steps", 20).Min(0).Help("each of them has its line in metrics.jsonl");
  run.log_every_steps =
      root.Int("log_every_steps", 100).Min(1).Help("after them, steps from one line to the next");
}

void ReadPlanKeys(Reader root, RunConfig& run) {
  run.stall_seconds =
      root.Number("stall_seconds", 0)
          .Min(0)
          .Help("report a rank that waits longer; 0: by measured step time, at least 30");
  run.plan = static_cast<std::string>(
      root.String("plan", "auto").Help("execution plan: auto, or the plan.json of another run"));
  if (run.plan != "auto" && !fs::is_regular_file(run.plan)) {
    root.Mistake("plan", "there is no plan file '" + run.plan + "'", "auto, or the path of a file");
  }
}

void ReadOutput(Reader root, const std::string& config_file, RunConfig& run) {
  const std::string output = root.String("output", "runs/{config}-{time}")
                                 .Help(
                                     "run folder; {config} is this file's name, {time} the time of "
                                     "the start, with -2, -3, ... where that exists");
  run.output_has_time = output.find("{time}") != std::string::npos;
  try {
    run.output = ExpandOutput(output, config_file, TimeStamp());
  } catch (const ConfigError& error) {
    root.Mistake("output", error.what(), error.hint());
  }
}

// Said here and not where a device is made, so that it has a place in the file.
void CheckDevice(Reader root, const RunConfig& run) {
  if (run.device != "cuda") return;
  const CudaLack lack = WhyNoCuda();
  root.Mistake("device", "device 'cuda' cannot be had: " + lack.why, lack.hint);
}

// What no single key can know.
void CheckTogether(Reader root, const RunConfig& run) {
  Reader cluster = root.Section("cluster");
  if (run.batch < run.workers) {
    root.Mistake("batch", fmt::format("batch {} gives some of the {} workers ({}) no sample",
                                      run.batch, run.workers, cluster.Line("workers")));
  }
  if (run.accumulate > 1 && run.batch >= run.workers && run.batch / run.workers < run.accumulate) {
    root.Mistake("accumulate",
                 fmt::format("accumulate {} cuts a worker's share of {} into parts "
                             "without a sample (batch {}, workers {})",
                             run.accumulate, Counted(run.batch / run.workers, "sample"), run.batch,
                             run.workers));
  }
  const int64_t samples = run.data.source ? run.data.source->size(Split::kTrain) : run.batch;
  if (run.batch > samples) {
    root.Mistake("batch", fmt::format("batch {} is more than the {} training samples of {}",
                                      run.batch, samples, run.data.name));
  }
  if (run.solver.warmup_epochs > static_cast<double>(run.epochs)) {
    root.Section("solver").Mistake(
        "warmup_epochs", fmt::format("warm-up of {} epochs is longer than the run ({} epochs, {})",
                                     run.solver.warmup_epochs, run.epochs, root.Line("epochs")));
  }
}

// The dump has one line a key, so the top-level `output` is the line that begins with it.
std::string WithoutOutput(const std::string& yaml) {
  const size_t begin = yaml.find("\noutput: ") + 1;
  const size_t end = yaml.find('\n', begin) + 1;
  return yaml.substr(0, begin) + yaml.substr(end);
}

RunConfig Read(config::Document& document, bool with_model, const std::string& model_yaml = "") {
  RunConfig run;
  run.model_yaml = model_yaml;
  Reader root = document.root();
  if (with_model) {
    ReadModelKeys(root, document.file_name(), run);
    ReadData(root, run);
  }
  ReadLength(root, run);
  run.solver = ReadSolverConfig(root.Section("solver", "how weights follow gradients"));
  ReadStrategy(root, run);
  ReadBatchNorm(root, run);
  ReadMachine(root, run);
  if (with_model) CheckDevice(root, run);  // a simulation without one computes nothing
  ReadRecords(root, run);
  ReadPlanKeys(root, run);
  ReadOutput(root, document.file_name(), run);
  CheckTogether(root, run);
  document.Finish();
  run.effective_yaml = document.EffectiveYaml();
  run.effective_json = document.EffectiveJson();
  run.config_sha256 = Sha256::Of(WithoutOutput(run.effective_yaml));
  return run;
}

}  // namespace

RunConfig ReadRunConfig(config::Document& document) { return Read(document, true); }

RunConfig ReadRunConfig(config::Document& document, const std::string& model_yaml) {
  return Read(document, true, model_yaml);
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
