// `dtrain time`: measures every kernel of a training step, forward and backward, in milliseconds (like `caffe time`),
// and writes the model profile.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/bench/training/step_rig.h"
#include "framework/cli/command.h"
#include "framework/core/execution_plan.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/model_profile.h"
#include "framework/core/printable.h"
#include "framework/core/statistics.h"
#include "framework/device/cpu/threads.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"

namespace dtrain {
namespace {

struct TimeOptions {
  ConfigOptions config;
  std::string profile, tune;
  int iterations = 50;
};

double GigaflopsPerSecond(double flops, double seconds) {
  return seconds > 0 ? flops / seconds * 1e-9 : 0;
}

void PrintTable(const StepTimes& times, int64_t batch) {
  std::cout << fmt::format("{:<18} {:<22} {:>10} {:>11} {:>9}\n", "layer", "kernel", "forward ms",
                           "backward ms", "GFLOP/s");
  double forward = 0, backward = 0;
  for (const KernelTimes& row : times.kernels) {
    const double f = Median(row.seconds[0]), b = Median(row.seconds[1]);
    forward += f;
    backward += b;
    const double flops = row.flops() * static_cast<double>(batch);
    std::cout << fmt::format("{:<18} {:<22} {:>10.4f} {:>11.4f} {:>9.1f}\n", row.name,
                             row.implementation, f * 1e3, b * 1e3,
                             GigaflopsPerSecond(flops, f + b));
  }
  const double step = Median(times.steps);
  std::cout << fmt::format("{:<41} {:>10.4f} {:>11.4f}\n", "all kernels", forward * 1e3,
                           backward * 1e3);
  std::cout << fmt::format("step {:.4f} ms with update, {:.0f} samples/s\n", step * 1e3,
                           batch / step);
}

void PrintJson(const StepTimes& times) {
  nlohmann::json json;
  for (const KernelTimes& row : times.kernels) {
    json["layers"].push_back({{"name", row.name},
                              {"kernel", row.implementation},
                              {"forward_seconds", Median(row.seconds[0])},
                              {"backward_seconds", Median(row.seconds[1])}});
  }
  json["step_seconds"] = Median(times.steps);
  std::cout << JsonText(json, 2) << '\n';
}

// A kernel timed alone includes the wait for it.  Returns the factor that makes all of them add up to a step.
double ShareOf(const StepTimes& times, const StepRig& rig) {
  if (!rig.queued()) return 1;
  double all = 0;
  for (const KernelTimes& row : times.kernels) {
    all += Median(row.seconds[0]) + Median(row.seconds[1]);
  }
  return std::min(1.0, Median(times.steps) / all);
}

// The profile has only the model's layers, so the time of a reorder is added to the layer that follows it.
ModelProfile ProfileOf(const StepTimes& times, StepRig& rig, int64_t batch) {
  ModelProfile profile;
  profile.model = rig.graph().name();
  profile.device = rig.plan().device;
  profile.batch = batch;
  profile.threads = rig.plan().threads;
  const double share = ShareOf(times, rig);
  double pending_forward = 0, pending_backward = 0;
  for (const KernelTimes& row : times.kernels) {
    pending_forward += share * Median(row.seconds[0]);
    pending_backward += share * Median(row.seconds[1]);
    if (row.layer == nullptr) continue;
    const int64_t params = row.layer->param_range.size();
    profile.layers.push_back({row.name, params, params * 4, pending_forward, pending_backward,
                              row.flops() * static_cast<double>(batch)});
    pending_forward = pending_backward = 0;
  }
  const std::vector<double> ready = rig.ready().Medians();
  // They were noted in steps with such waits as well.
  const bool late = rig.queued() && !ready.empty() && ready.back() > Median(times.steps);
  NoteReady(ready, late ? ready.back() / Median(times.steps) : 1, profile);
  return profile;
}

// Returns the plan of a run of this config, with the kernels that were measured.
ExecutionPlan TunedPlan(RunConfig config, const StepRig& rig) {
  config.plan = "auto";
  const auto workers = static_cast<int>(config.workers);
  ExecutionPlan plan = DecidePlan(config, rig.graph(), workers, ThreadsHere(workers));
  plan.kernels = rig.plan().kernels;
  return plan;
}

int TimeLayers(const TimeOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  RunConfig config = LoadConfig(options.config);
  const RunConfig given = config;
  if (!options.tune.empty()) {
    config.plan = "measure";
    // A plan is chosen by the largest share of a worker.
    config.batch = LargestPart(config.batch, config.workers);
    if (config.workers > 1)
      log::Info("timing a worker's {} of {} samples", config.batch, given.batch);
  }
  TellDevice(config);
  StepRig rig(config);
  const auto iterations = static_cast<size_t>(options.iterations);
  const auto enough = [&](const StepTimes& so_far) { return so_far.steps.size() >= iterations; };
  StepTimes times = TimeSteps(rig, true, enough);
  if (rig.queued()) times.steps = TimeSteps(rig, false, enough).steps;
  if (invocation.json) {
    PrintJson(times);
  } else {
    PrintTable(times, config.batch);
  }
  if (!options.tune.empty()) WriteOutput(options.tune, ToJson(TunedPlan(given, rig)));
  if (!options.profile.empty()) {
    WriteOutput(options.profile, ToJson(ProfileOf(times, rig, config.batch)));
  }
  return 0;
}

}  // namespace

static void AddTimeCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TimeOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "time", "measure the forward and backward time of every layer",
                 [options, &invocation] { return TimeLayers(*options, invocation); });
  AddConfigOptions(*command, options->config);
  command->add_option("--profile", options->profile, "write the model profile to this file")
      ->type_name("FILE");
  command
      ->add_option("--tune", options->tune,
                   "on a GPU, time every engine that cuDNN lists for a convolution, take the "
                   "fastest, and write the plan to this file, for `plan: FILE`")
      ->type_name("FILE");
  command->add_option("--iterations", options->iterations, "number of steps to measure")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
}

DTRAIN_COMMAND("time", 90, AddTimeCommand);

}  // namespace dtrain
