#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/results/summary.h"

namespace dtrain {
namespace {

const char* NameOf(Criterion measure) {
  if (measure == Criterion::kAccuracy) return "accuracy";
  return measure == Criterion::kPerplexity ? "perplexity" : "loss";
}

std::string Shown(Criterion measure, double value) {
  if (measure == Criterion::kAccuracy) return fmt::format("{:.2f} %", 100 * value);
  return measure == Criterion::kPerplexity ? fmt::format("{:.2f}", value)
                                           : fmt::format("{:.4g}", value);
}

}  // namespace

std::string WorkersText(const Summary& summary) {
  const std::string workers = Counted(summary.workers, "worker");
  return summary.servers ? workers + " and " + Counted(*summary.servers, "server") : workers;
}

std::string StrategyText(const Summary& summary) {
  std::string text = summary.strategy;
  if (!summary.collective.empty()) text += ", collective " + summary.collective;
  return summary.compressor.empty() ? text : text + ", compressed by " + summary.compressor;
}

std::string WeightsText(std::optional<int64_t> epoch, std::optional<int64_t> step) {
  if (epoch && step) return fmt::format(", of the weights of epoch {} (step {})", *epoch, *step);
  if (epoch) return fmt::format(", of the weights of epoch {}, the last", *epoch);
  return step ? fmt::format(", of the weights of step {}", *step) : "";
}

std::string TestText(const TestResult& test, const std::string& split) {
  std::string text = split;
  if (test.accuracy) text += fmt::format(" accuracy {:.2f} %,", 100 * *test.accuracy);
  for (const auto& [name, value] : test.others) {
    text += fmt::format(" {} {:.2f} %,", name, 100 * value);
  }
  if (test.perplexity) text += fmt::format(" perplexity {:.2f},", *test.perplexity);
  text += fmt::format(" loss {:.4f}", test.loss);
  if (test.bleu) text += fmt::format(", BLEU {:.2f}", *test.bleu);
  return text + WeightsText(test.epoch, test.step);
}

std::string TargetText(const Summary& summary) {
  if (!summary.target) return "";
  const TargetResult& target = *summary.target;
  const Criterion measure = summary.best ? summary.best->measure() : Criterion::kAccuracy;
  const std::string what =
      fmt::format("the target {} of {}", NameOf(measure), Shown(measure, target.value));
  if (target.reached) {
    return fmt::format("reached {} after {:.3f} s of training ({:.2f} epochs, {:.0f} steps)", what,
                       *target.seconds, *target.epochs, *target.steps);
  }
  const std::string not_reached =
      summary.status == "stopped" ? "has not yet reached " : "did not reach ";
  if (!summary.best) return not_reached + "the target: nothing was evaluated";
  return fmt::format("{}{} (best: {})", not_reached, what, Shown(measure, summary.best->value()));
}

std::string DeathsText(const Summary& summary) {
  std::string text;
  for (const DeathSummary& death : summary.deaths) {
    text += fmt::format("worker {} of node {} died at {:.3f} s, after {}\n", death.worker,
                        death.node, death.seconds, Counted(death.own_steps, "step"));
  }
  if (summary.deaths.empty()) return text;
  const int64_t lost = summary.protocol ? summary.protocol->Total(kLostGradients.name) : 0;
  return text + fmt::format("{} lost, that had been handed in and not applied\n",
                            lost == 1 ? "1 gradient is" : fmt::format("{} gradients are", lost));
}

void NameIdleServers(const Summary& summary) {
  if (!summary.protocol || summary.protocol->idle_servers.empty()) return;
  const std::vector<int64_t>& idle = summary.protocol->idle_servers;
  log::Info("idle, since no group is left for {}: server{} {}", idle.size() == 1 ? "it" : "them",
            idle.size() == 1 ? "" : "s", fmt::join(idle, ", "));
}

}  // namespace dtrain
