// `dtrain bench`: runs a benchmark and prints one JSON line for each case.  allreduce and link measure the ranks of an
// MPI launch (or start --workers of them); exchange and sums do so for a config; data, step, layers and topk measure
// this process alone.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/bench/network/bench_allreduce.h"
#include "framework/bench/network/bench_link.h"
#include "framework/bench/selection/bench_topk.h"
#include "framework/bench/training/exchange_run.h"
#include "framework/bench/training/step_rig.h"
#include "framework/cli/command.h"
#include "framework/cli/doctor_report.h"
#include "framework/cli/scenario.h"
#include "framework/core/file.h"
#include "framework/core/statistics.h"
#include "framework/core/time.h"
#include "framework/data/dataset.h"
#include "framework/device/cpu/threads.h"
#include "framework/device/cuda/module.h"
#include "framework/launch/supervisor.h"
#include "framework/launch/world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

struct BenchOptions {
  int workers = 2;
  ScenarioOptions scenario;
  BenchAllreduceOptions allreduce;
  BenchLinkOptions link;
  BenchTopkOptions topk;
  std::string costs;  // file that bench topk writes; "": none
  std::string model = "lenet5";
  std::string data = "digits";
  int64_t batch = 64;
  int64_t threads = 1;
  std::string device = "auto";
  std::string precision = "fp32";
  double seconds = 2;
  std::string output;
};

// Returns the config of a step benchmark: all keys have their defaults, except those that an option sets.
RunConfig StepConfig(const BenchOptions& options) {
  const std::string text = fmt::format(
      "model: {{name: {}}}\ndata: {{name: {}}}\nbatch: {}\nthreads: {}\ndevice: {}\n"
      "precision: {}\n"
      "solver: {{name: sgd, lr: 0.01, momentum: 0.9}}\n",
      options.model, options.data, options.batch, options.threads, options.device,
      options.precision);
  config::Document document = config::Document::FromText(text, "bench");
  return ReadRunConfig(document);
}

StepTimes TimeFor(StepRig& rig, bool kernels, double seconds) {
  std::optional<Nanos> begun;
  return TimeSteps(rig, kernels, [&](const StepTimes&) {
    if (!begun) begun = WallNow();
    return ToSeconds(WallNow() - *begun) >= seconds;
  });
}

double MinOf(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

int BenchStep(const BenchOptions& options) {
  StepRig rig(StepConfig(options));
  const std::vector<double> seconds = TimeFor(rig, false, options.seconds).steps;
  const double median = Median(seconds);
  const nlohmann::json line = {{"bench", "step"},
                               {"model", options.model},
                               {"batch", options.batch},
                               {"device", rig.plan().device},
                               {"threads", rig.plan().threads},
                               {"isa", rig.plan().isa},
                               {"precision", rig.plan().precision},
                               {"samples", seconds.size()},
                               {"p50_us", median * 1e6},
                               {"min_us", MinOf(seconds) * 1e6},
                               {"steps_per_second", 1 / median}};
  std::cout << line.dump() << '\n';
  return 0;
}

// Measures how long it takes to load the config's data set, including the decoding of images, and then to make batches
// of one epoch.
int BenchData(const BenchOptions& options) {
  const RunConfig config = options.scenario.Load();
  if (config.data.source == nullptr)
    throw UsageError("no data set to read", "name one: --config F");
  const Nanos begun = WallNow();
  const std::unique_ptr<Dataset> set = LoadData(config);
  const double load_seconds = ToSeconds(WallNow() - begun);
  int64_t samples = 0;
  for (const Split split : kSplits) samples += set->size(split);
  const int64_t in_epoch = set->size(Split::kTrain);
  Batch batch = set->MakeBatch(std::min(config.batch, in_epoch));
  const Nanos filling = WallNow();
  for (int64_t begin = 0; begin < in_epoch; begin += config.batch) {
    std::vector<int64_t> indices(static_cast<size_t>(std::min(config.batch, in_epoch - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    batch.Resize(static_cast<int64_t>(indices.size()));
    set->Fill(Split::kTrain, indices, 0, batch);
  }
  const double fill_seconds = ToSeconds(WallNow() - filling);
  const nlohmann::json line = {
      {"bench", "data"},
      {"data", config.data.name},
      {"samples", samples},
      {"load_seconds", load_seconds},
      {"load_samples_per_second", static_cast<double>(samples) / load_seconds},
      {"fill_samples_per_second", static_cast<double>(in_epoch) / fill_seconds}};
  std::cout << line.dump() << '\n';
  return 0;
}

// Prints one line for each kernel of the model's training step.
int BenchLayers(const BenchOptions& options) {
  StepRig rig(StepConfig(options));
  for (const KernelTimes& kernel : TimeFor(rig, true, options.seconds).kernels) {
    const double forward = MinOf(kernel.seconds[0]), backward = MinOf(kernel.seconds[1]);
    const double flops = kernel.flops() * static_cast<double>(options.batch);
    const std::string type = kernel.layer != nullptr
                                 ? kernel.layer->type
                                 : kernel.name.substr(kernel.name.rfind(':') + 1);
    const nlohmann::json line = {{"bench", "layers"},
                                 {"model", options.model},
                                 {"layer", kernel.name},
                                 {"type", type},
                                 {"kernel", kernel.implementation},
                                 {"batch", options.batch},
                                 {"device", rig.plan().device},
                                 {"threads", rig.plan().threads},
                                 {"precision", rig.plan().precision},
                                 {"forward_min_us", forward * 1e6},
                                 {"backward_min_us", backward * 1e6},
                                 {"forward_bytes", kernel.bytes[0]},
                                 {"backward_bytes", kernel.bytes[1]},
                                 {"gflop", flops * 1e-9},
                                 {"gflop_s", flops / (forward + backward) * 1e-9}};
    std::cout << line.dump() << '\n';
  }
  return 0;
}

// Runs `bench` on the ranks of a launch; outside one, starts --workers ranks of this command.
template <class Bench>
int OnRanks(const BenchOptions& options, const Invocation& invocation, Bench bench) {
  if (!InsideMpiLaunch()) {
    SupervisorOptions supervisor;
    supervisor.ranks = options.workers;
    supervisor.arguments.assign(invocation.argv + 1, invocation.argv + invocation.argc);
    return Supervise(supervisor);
  }
  return RunOnRanks(invocation.argc, invocation.argv,
                    [&](World& world) { return bench(world.transport()); });
}

// Runs the strategy on real ranks, with compute replaced by sleep.  Prints the keys of summary.json on one line.
int BenchExchange(const BenchOptions& options, const Invocation& invocation) {
  const RunConfig config = options.scenario.Load();
  const std::optional<ModelProfile> profile = options.scenario.Profile();
  const std::vector<std::vector<double>> trace = options.scenario.Trace(config);
  BenchOptions ranks = options;
  ranks.workers = PlacementOf(config).ranks();
  return OnRanks(ranks, invocation, [&](Transport& transport) {
    const Summary summary = RunExchange(config, profile, trace, transport);
    if (transport.rank() != 0) return 0;
    nlohmann::ordered_json line = nlohmann::ordered_json::parse(ToJson(summary));
    line["bench"] = "exchange";
    std::cout << line.dump() << std::endl;
    return 0;
  });
}

// Measures all-reduces on real ranks.  With --output it writes a profile that includes their times.
int BenchSums(const BenchOptions& options, const Invocation& invocation) {
  options.scenario.RefuseTrace();
  const RunConfig config = options.scenario.Load();
  const std::optional<ModelProfile> profile = options.scenario.Profile();
  if (!options.output.empty() && !profile) {
    throw UsageError("--output writes a profile with the all-reduce times",
                     "name the profile to add them to: --profile FILE (dtrain time --profile)");
  }
  const Placement placement = PlacementOf(config);
  if (!config.strategy->traits().collectives) {
    throw UsageError("strategy '" + config.strategy_name + "' uses no all-reduce over all workers",
                     "choose a strategy that uses all-reduces: --set strategy.name=mgwfbp");
  }
  if (config.compress.coder() != nullptr) {
    throw UsageError("the sums of compressor '" + config.compress.name + "' are not measured",
                     "choose another one: --set compress.name=none");
  }
  BenchOptions ranks = options;
  ranks.workers = placement.ranks();
  return OnRanks(ranks, invocation, [&](Transport& transport) {
    const SumProfile sums = MeasureSumsOf(config, profile, transport);
    if (transport.rank() != 0) return 0;
    for (const SumProfile::Time& time : sums.times) {
      const nlohmann::ordered_json line = {{"bench", "sums"},
                                           {"by", sums.by},
                                           {"workers", sums.workers},
                                           {"bytes", time.bytes},
                                           {"seconds", time.seconds}};
      std::cout << line.dump() << std::endl;
    }
    if (!options.output.empty()) {
      ModelProfile measured = *profile;
      std::erase_if(measured.sums, [&](const SumProfile& old) {
        return old.by == sums.by && old.workers == sums.workers;
      });
      measured.sums.push_back(sums);
      WriteOutput(options.output, ToJson(measured));
    }
    return 0;
  });
}

void AddStepOptions(CLI::App& command, BenchOptions& options) {
  command.add_option("--model", options.model, "a model of configs/models or a file")
      ->capture_default_str();
  command.add_option("--data", options.data, "the data set that determines the input shapes")
      ->capture_default_str();
  command.add_option("--batch", options.batch, "samples per step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--threads", options.threads, "compute threads")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddDeviceOption(command, options.device);
  command.add_option("--precision", options.precision, "fp32, bf16, or on a GPU tf32 or fp16")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "tf32", "fp16"}));
  command.add_option("--seconds", options.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

int BenchSelections(const BenchOptions& options, const CLI::App& command) {
  Device device;
  if (DeviceKindOf(options.device) == DeviceKind::kCuda) {
    device = {DeviceKind::kCuda, 1, CpuIsa(), Precision::kFp32, OpenCuda(Precision::kFp32)};
  }
  if (options.costs.empty()) return BenchTopk(options.topk, device, std::cout);
  BenchTopkOptions topk = options.topk;
  const BenchTopkOptions usual = BenchTopkOptions::ForCosts();
  if (command.count("--compressors") == 0) topk.compressors = usual.compressors;
  if (command.count("--sizes") == 0) topk.sizes = usual.sizes;
  if (command.count("--density") == 0) topk.densities = usual.densities;
  CompressCosts costs{.device = std::string(NameOf(device.kind)),
                      .machine = device.queue != nullptr ? CudaGpu() : CpuName(),
                      .isa = IsaName(CpuIsa()),
                      .threads = 1,
                      .source = fmt::format("dtrain bench topk, {} values", topk.distribution)};
  BenchTopk(topk, device, std::cout, &costs.costs);
  WriteOutput(options.costs, ToJson(costs));
  return 0;
}

void AddTopkOptions(CLI::App& command, BenchOptions& bench) {
  AddDeviceOption(command, bench.device);
  BenchTopkOptions& options = bench.topk;
  command
      .add_option("--compressors", options.compressors,
                  "compressors to measure, optionally with keys, as in gaussiank:loop=published "
                  "(with --costs: all)")
      ->capture_default_str();
  command
      .add_option("--sizes", options.sizes,
                  "vector lengths (with --costs: 1000,10000,100000,1000000,10000000)")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{2'000'000'000}));
  command
      .add_option("--density", options.densities,
                  "fractions of the values to select (with --costs: 0.001,0.01,0.1)")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 0.999999));
  command
      .add_option("--coder-workers", options.workers,
                  "numbers of workers whose words a coder (ef_signsgd, powersgd) decodes")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command
      .add_option("--costs", bench.costs,
                  "write the times to this file, for cluster.compress_costs")
      ->type_name("FILE");
  command
      .add_option("--distribution", options.distribution,
                  "distribution of the values: normal or laplace")
      ->capture_default_str()
      ->check(CLI::IsMember({"normal", "laplace"}));
  command.add_option("--seconds", options.seconds, "how long to measure each case")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

static void AddBenchCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* bench = app.add_subcommand("bench", "run benchmarks; prints one JSON line per case");
  bench->require_subcommand(1);
  CLI::App* allreduce = AddCommand(*bench, invocation, "allreduce",
                                   "compare the collectives with MPI_Allreduce", [=, &invocation] {
                                     return OnRanks(*options, invocation, [&](Transport& t) {
                                       return BenchAllreduce(t, options->allreduce, std::cout);
                                     });
                                   });
  allreduce->add_option("--workers", options->workers, "number of ranks to start")
      ->capture_default_str()
      ->check(CLI::Range(2, 1024));
  allreduce->add_option("--collectives", options->allreduce.collectives, "collectives to compare")
      ->delimiter(',')
      ->capture_default_str();
  allreduce
      ->add_option("--per-node", options->allreduce.per_node,
                   "ranks per node for collective hierarchical; 0: all ranks of a host")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  allreduce->add_option("--bytes", options->allreduce.sizes_bytes, "message sizes in bytes")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  CLI::App* link = AddCommand(
      *bench, invocation, "link", "measure latency and bandwidth between rank 0 and the others",
      [=, &invocation] {
        return OnRanks(*options, invocation,
                       [&](Transport& t) { return BenchLink(t, options->link, std::cout); });
      });
  link->add_option("--workers", options->workers, "number of ranks to start")
      ->capture_default_str()
      ->check(CLI::Range(2, 1024));
  link->add_flag_callback(
      "--fit-only", [options] { options->link.sizes_bytes.clear(); },
      "print only the fitted bandwidth, token bucket and latency");
  link->add_flag("--incast", options->link.incast,
                 "measure how unevenly messages to one rank share its bandwidth");
  CLI::App* exchange = AddCommand(*bench, invocation, "exchange",
                                  "run a strategy over real ranks with compute replaced by sleep, "
                                  "to compare with dtrain simulate",
                                  [=, &invocation] { return BenchExchange(*options, invocation); });
  AddScenarioOptions(*exchange, options->scenario);
  CLI::App* sums = AddCommand(
      *bench, invocation, "sums",
      "measure the all-reduces of a config on real ranks, for dtrain plan and strategy.profile",
      [=, &invocation] { return BenchSums(*options, invocation); });
  AddScenarioOptions(*sums, options->scenario);
  sums->add_option("--output", options->output,
                   "write the profile with the all-reduce times to this file");
  CLI::App* data = AddCommand(*bench, invocation, "data",
                              "measure how fast a config's data set is read and made into batches",
                              [=] { return BenchData(*options); });
  AddConfigOption(*data, options->scenario.config.file,
                  "the run's YAML file, or the name of one of configs/runs");
  AddSettingOptions(*data, options->scenario.config);
  AddStepOptions(*AddCommand(*bench, invocation, "step", "measure a training step of a model",
                             [=, &invocation] {
                               LimitSpinning(invocation.argv);
                               return BenchStep(*options);
                             }),
                 *options);
  AddStepOptions(
      *AddCommand(*bench, invocation, "layers", "measure every kernel of a training step",
                  [=, &invocation] {
                    LimitSpinning(invocation.argv);
                    return BenchLayers(*options);
                  }),
      *options);
  AddTopkOptions(
      *AddCommand(*bench, invocation, "topk",
                  "measure selections, casts and coders of compressors, compared with a "
                  "plain read",
                  [=] { return BenchSelections(*options, *bench->get_subcommand("topk")); }),
      *options);
}

DTRAIN_COMMAND("bench", 100, AddBenchCommand);

}  // namespace dtrain
