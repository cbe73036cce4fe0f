#include "framework/cli/dry_run.h"

#include <sys/resource.h>

#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/bench/training/step_rig.h"
#include "framework/core/printable.h"
#include "framework/core/progress_display.h"
#include "framework/core/statistics.h"
#include "framework/core/text.h"
#include "framework/data/batches.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kStepsMost = 10;     // steps timed, after the first
constexpr double kSecondsEnough = 8;  // of all steps, the first included

// Returns the largest memory use of this process so far, the data included.
int64_t PeakBytes() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return usage.ru_maxrss * int64_t{1024};
}

int64_t StepsLeft(const RunInfo& info) {
  return std::max<int64_t>(info.last_step - info.begin.step, 0);
}

// Estimates the time left.  There is no estimate for several workers: their waiting time was not measured.
std::optional<double> SecondsOf(const RunInfo& info, const FirstSteps& steps) {
  if (info.summary.workers > 1 || steps.measured == 0) return std::nullopt;
  return static_cast<double>(StepsLeft(info)) * steps.seconds;
}

void Line(std::ostream& out, const char* about, const std::string& text) {
  out << fmt::format("{:<9} {}\n", about, text);
}

std::string DataText(const RunInfo& info) {
  std::string text = fmt::format("{}: {} training", info.summary.dataset, info.train_samples);
  if (info.validation_samples > 0) text += fmt::format(", {} validation", info.validation_samples);
  return text + fmt::format(" and {} test samples", info.test_samples);
}

std::string SharesText(const RunInfo& info, int64_t accumulate) {
  const Summary& summary = info.summary;
  std::string text = fmt::format("{}, batch {}", WorkersText(summary), summary.global_batch);
  if (summary.workers > 1) text += fmt::format(" ({} per worker)", info.share);
  if (accumulate > 1) text += fmt::format(" in {} parts", accumulate);
  return text + "; " + StrategyText(summary);
}

std::string RunText(const RunInfo& info, const DryRunWords& words) {
  std::string text =
      fmt::format("{:.4g} {}, {} each, {} in total", info.summary.epochs,
                  info.summary.epochs == 1 ? "epoch" : "epochs",
                  Counted(info.steps_per_epoch, "step"), Counted(info.last_step, "step"));
  if (words.runs > 1) {
    text += fmt::format("; seed {}, the first of {} runs", info.summary.seed, words.runs);
  }
  return text;
}

std::string StartText(const RunInfo& info) {
  if (info.finished)
    return fmt::format("nothing to do: the run completed at step {}", info.begin.step);
  if (info.start_file.empty()) return "fresh, from initial weights";
  if (info.begin.step == 0) return "fresh, from the weights of " + info.start_file;
  return fmt::format("after step {}, from {}", info.begin.step, info.start_file);
}

std::string MemoryText(const RankMemory& memory) {
  const auto bytes = [](int64_t n) { return HumanBytes(static_cast<double>(n)); };
  std::string text = fmt::format("{} per worker: weights {}, gradients {}, ", bytes(memory.total()),
                                 bytes(memory.weights), bytes(memory.gradients));
  if (memory.solver > 0) text += fmt::format("solver {}, ", bytes(memory.solver));
  if (memory.exchange > 0) text += fmt::format("exchange {}, ", bytes(memory.exchange));
  text +=
      fmt::format("activations {}, batches {}", bytes(memory.activations), bytes(memory.batches));
  const int64_t peak = PeakBytes();
  return peak > 0 ? text + fmt::format("; peak memory of this process: {}, including the data",
                                       bytes(peak))
                  : text;
}

std::string PlanText(const RunInfo& info) {
  const ExecutionPlan& plan = info.plan;
  std::string text =
      fmt::format("{} ({}), {} per rank, {}, ", plan.device, plan.gpu.empty() ? plan.isa : plan.gpu,
                  Counted(plan.threads, "thread"), plan.precision);
  text += info.buckets_open ? "buckets by times that the run measures first"
                            : Counted(static_cast<int64_t>(plan.buckets.size()), "bucket");
  std::map<std::string, int> layers;
  for (const auto& [layer, kernel] : plan.kernels) ++layers[KernelName(kernel).implementation];
  std::vector<std::string> parts;
  for (const auto& [kernel, count] : layers) parts.push_back(fmt::format("{} {}", count, kernel));
  return text + "; kernels: " + Join(parts);
}

std::string StepText(const RunInfo& info, const FirstSteps& steps) {
  std::string text =
      fmt::format("{:.2f} ms ({} on the run's batches, {:.0f} samples/s)", 1e3 * steps.seconds,
                  Counted(steps.measured, "step"), static_cast<double>(info.share) / steps.seconds);
  if (const auto seconds = SecondsOf(info, steps)) {
    return text + fmt::format("; {} take about {}, without evaluations and checkpoints",
                              Counted(StepsLeft(info), "step"), HumanSeconds(*seconds));
  }
  return text + "; measured on one worker; communication and waiting are not included";
}

}  // namespace

FirstSteps TimeFirstSteps(DryRun& run) {
  if (run.info.finished) return {};
  const BusyProgress timing("timing steps");
  StepRig rig(run.config, std::move(run.inputs));
  std::vector<double> seconds =
      TimeSteps(
          rig, /*kernels=*/false,
          [](const StepTimes& so_far) {
            const std::vector<double>& steps = so_far.steps;
            return steps.size() > kStepsMost ||
                   std::accumulate(steps.begin(), steps.end(), 0.0) >= kSecondsEnough;
          },
          /*warm_up=*/rig.queued() ? 2 * Prefetcher::kDepth
                                   : 0)  // each batch in the ring is captured
          .steps;
  // The first step is left out, because it touches new memory and fills caches; for a large model on a CPU it may be the
  // only one.
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  return {static_cast<int64_t>(seconds.size()), Median(seconds)};
}

void PrintDryRun(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                 const DryRunWords& words) {
  const RunInfo& info = run.info;
  Line(out, "data", DataText(info));
  Line(out, "model", fmt::format("{}: {} parameters", info.summary.model, info.parameters));
  if (!info.frozen.empty()) Line(out, "frozen", info.frozen);
  Line(out, "workers", SharesText(info, run.config.accumulate));
  if (!words.hosts.empty()) {
    Line(out, "hosts", words.hosts + "; the data and devices of other machines were not looked at");
  }
  Line(out, "run", RunText(info, words));
  Line(out, "start", StartText(info));
  Line(out, "memory", MemoryText(info.memory));
  Line(out, "plan", PlanText(info));
  if (steps.measured > 0) Line(out, "step", StepText(info, steps));
  Line(out, "config", words.check);
}

void PrintDryRunJson(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                     const DryRunWords& words) {
  const RunInfo& info = run.info;
  const RankMemory& memory = info.memory;
  // The values have the same names and digits as in summary.json.
  ordered_json json = ordered_json::parse(ToJson(info.summary));
  for (const char* const of_its_end :
       {"schema", "status", "exit_code", "seconds", "samples_per_second", "plan"}) {
    json.erase(of_its_end);
  }
  json["parameters"] = info.parameters;
  json["samples"] = {{"train", info.train_samples}, {"test", info.test_samples}};
  if (info.validation_samples > 0) json["samples"]["validation"] = info.validation_samples;
  json["worker_batch"] = info.share;
  json["steps_per_epoch"] = info.steps_per_epoch;
  json["last_step"] = info.last_step;
  json["runs"] = words.runs;
  json["start"] = {{"step", info.begin.step}, {"finished", info.finished}};
  if (!info.start_file.empty()) json["start"]["file"] = info.start_file;
  json["memory"] = {{"weights", memory.weights},         {"gradients", memory.gradients},
                    {"solver", memory.solver},           {"exchange", memory.exchange},
                    {"activations", memory.activations}, {"batches", memory.batches},
                    {"worker", memory.total()},          {"process", PeakBytes()}};
  json["plan"] = ordered_json::parse(ToJson(info.plan));
  if (steps.measured > 0) {
    json["step"] = {{"seconds", steps.seconds}, {"measured", steps.measured}};
  }
  if (const auto seconds = SecondsOf(info, steps)) json["estimated_seconds"] = *seconds;
  json["config"] = ordered_json::parse(run.config.effective_json);
  out << JsonText(json, 2) << '\n';
}

}  // namespace dtrain
