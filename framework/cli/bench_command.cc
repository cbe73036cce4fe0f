// `dtrain bench`: one JSON line a case.  allreduce and link measure the ranks of an MPI launch (or
// start --workers of them); step and layers measure this process.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/bench/network/bench_allreduce.h"
#include "framework/bench/network/bench_link.h"
#include "framework/bench/training/exchange_run.h"
#include "framework/bench/training/step_rig.h"
#include "framework/cli/command.h"
#include "framework/cli/scenario.h"
#include "framework/core/statistics.h"
#include "framework/device/cpu/threads.h"
#include "framework/runtime/launch/supervisor.h"
#include "framework/runtime/launch/world.h"
#include "framework/runtime/setup/run_exchange.h"

namespace dtrain {
namespace {

struct BenchOptions {
  int workers = 2;
  ScenarioOptions scenario;
  BenchAllreduceOptions allreduce;
  BenchLinkOptions link;
  std::string model = "lenet5";
  std::string data = "digits";
  int64_t batch = 64;
  int64_t threads = 1;
  std::string precision = "fp32";
  double seconds = 2;
};

// The config of a step benchmark: defaults but for what the options say.
RunConfig StepConfig(const BenchOptions& options) {
  const std::string text = fmt::format(
      "model: {{name: {}}}\ndata: {{name: {}}}\nbatch: {}\nthreads: {}\nprecision: {}\n"
      "solver: {{name: sgd, lr: 0.01, momentum: 0.9}}\n",
      options.model, options.data, options.batch, options.threads, options.precision);
  config::Document document = config::Document::FromText(text, "bench");
  return ReadRunConfig(document);
}

int BenchStep(const BenchOptions& options) {
  StepRig rig(StepConfig(options));
  Nanos begun = WallNow();
  for (int i = 0; i < 3 || (i < 10 && ToSeconds(WallNow() - begun) < options.seconds); ++i)
    rig.Step();
  std::vector<double> seconds;
  begun = WallNow();
  while (ToSeconds(WallNow() - begun) < options.seconds) {
    const Nanos start = WallNow();
    rig.Step();
    seconds.push_back(ToSeconds(WallNow() - start));
  }
  const double median = Median(seconds);
  const nlohmann::json line = {{"bench", "step"},
                               {"model", options.model},
                               {"batch", options.batch},
                               {"threads", rig.plan().threads},
                               {"isa", rig.plan().isa},
                               {"precision", rig.plan().precision},
                               {"samples", seconds.size()},
                               {"p50_us", median * 1e6},
                               {"min_us", *std::min_element(seconds.begin(), seconds.end()) * 1e6},
                               {"steps_per_second", 1 / median}};
  std::cout << line.dump() << '\n';
  return 0;
}

int64_t BytesOf(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) {
    if (t.data != nullptr) bytes += t.shape.count() * SizeOf(t.dtype);
  }
  return bytes;
}

// What a kernel call must read and write at least: every tensor that it was given once.
int64_t BytesOf(const KernelTiming& t) {
  const KernelArgs& args = *t.args;
  const int64_t both = BytesOf(args.inputs) + BytesOf(args.params);
  if (!t.backward) return both + BytesOf(args.outputs);
  return both + BytesOf(args.output_gradients) + BytesOf(args.input_gradients) +
         BytesOf(args.param_gradients);
}

// One line a kernel of the model's training step.
int BenchLayers(const BenchOptions& options) {
  StepRig rig(StepConfig(options));
  struct Best {
    std::string implementation;
    std::string type;
    double flops[2] = {0, 0};  // of a sample
    int64_t bytes[2] = {0, 0};
    Nanos nanos[2] = {0, 0};
  };
  std::vector<std::pair<std::string, Best>> layers;
  rig.net().set_observer([&](const KernelTiming& t) {
    auto it = std::find_if(layers.begin(), layers.end(),
                           [&](const auto& l) { return l.first == *t.name; });
    if (it == layers.end()) it = layers.insert(layers.end(), {*t.name, Best{*t.implementation}});
    Best& kernel = it->second;
    if (t.layer != nullptr) {
      kernel.type = t.layer->type;
      kernel.flops[0] = t.layer->cost.forward_flops;
      kernel.flops[1] = t.layer->cost.backward_flops;
    } else {
      kernel.type = t.name->substr(t.name->rfind(':') + 1);  // inserted: "conv1:reorder"
    }
    const int pass = t.backward ? 1 : 0;
    kernel.bytes[pass] = BytesOf(t);
    Nanos& best = kernel.nanos[pass];
    best = best == 0 ? t.nanos : std::min(best, t.nanos);
  });
  const Nanos begun = WallNow();
  while (ToSeconds(WallNow() - begun) < options.seconds) rig.Step();
  for (const auto& [name, best] : layers) {
    const double total = static_cast<double>(best.nanos[0] + best.nanos[1]);
    const double flops = (best.flops[0] + best.flops[1]) * static_cast<double>(options.batch);
    const nlohmann::json line = {{"bench", "layers"},
                                 {"model", options.model},
                                 {"layer", name},
                                 {"type", best.type},
                                 {"kernel", best.implementation},
                                 {"batch", options.batch},
                                 {"threads", rig.plan().threads},
                                 {"precision", rig.plan().precision},
                                 {"forward_min_us", best.nanos[0] * 1e-3},
                                 {"backward_min_us", best.nanos[1] * 1e-3},
                                 {"forward_bytes", best.bytes[0]},
                                 {"backward_bytes", best.bytes[1]},
                                 {"gflop", flops * 1e-9},
                                 {"gflop_s", flops / total}};
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

// The strategy over real ranks with compute replaced by sleep: summary.json's keys on one line.
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

void AddStepOptions(CLI::App& command, BenchOptions& options) {
  command.add_option("--model", options.model, "a model of configs/models or a file")
      ->capture_default_str();
  command.add_option("--data", options.data, "the data set whose shapes it takes")
      ->capture_default_str();
  command.add_option("--batch", options.batch, "samples a step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--threads", options.threads, "compute threads")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--precision", options.precision, "fp32 or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command.add_option("--seconds", options.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
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
}

DTRAIN_COMMAND("bench", 100, AddBenchCommand);

}  // namespace dtrain
