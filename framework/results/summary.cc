#include "framework/results/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/setup/run_exchange.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr int kSummarySchema = 2;

void Put(ordered_json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

template <class T>
void Put(ordered_json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

// Writes a whole number as an integer, for example the steps of a synchronous run.
void WholeNumber(ordered_json& json, const char* key) {
  const double value = json[key].get<double>();
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    json[key] = static_cast<int64_t>(value);
  }
}

ordered_json Json(const StepSeconds& s) { return {{"p50", s.p50}, {"p90", s.p90}, {"max", s.max}}; }

ordered_json Json(const TestResult& test) {
  ordered_json json = {{"loss", test.loss}};
  Put(json, "accuracy", test.accuracy);
  Put(json, "perplexity", test.perplexity);
  Put(json, "bleu", test.bleu);
  for (const auto& [name, value] : test.others) json[name] = value;
  Put(json, "guess_accuracy", test.guess_accuracy);
  if (test.guessing) json["guessing"] = true;
  Put(json, "step", test.step);
  Put(json, "epoch", test.epoch);
  return json;
}

ordered_json Json(const BestResult& best) {
  ordered_json json = {{"epoch", best.epoch}};
  Put(json, "step", best.step);
  Put(json, "loss", best.loss);
  Put(json, "accuracy", best.accuracy);
  Put(json, "bleu", best.bleu);
  Put(json, "perplexity", best.perplexity);
  for (const auto& [name, value] : best.others) json[name] = value;
  return json;
}

ordered_json Json(const TargetResult& target) {
  ordered_json json = {{"value", target.value}, {"reached", target.reached}};
  Put(json, "seconds", target.seconds);
  Put(json, "epochs", target.epochs);
  Put(json, "steps", target.steps);
  return json;
}

ordered_json Json(const CommunicationSummary& c) {
  ordered_json json = {{"bytes_sent", c.bytes_sent},
                       {"bytes_received", c.bytes_received},
                       {"messages", c.messages},
                       {"exposed_seconds", c.exposed_seconds}};
  Put(json, "bytes_inside_nodes", c.bytes_inside_nodes);
  Put(json, "bytes_lent", c.bytes_lent);
  Put(json, "bytes_per_gradient", c.bytes_per_gradient);
  Put(json, "compress_seconds", c.compress_seconds);
  Put(json, "density", c.density);
  return json;
}

ordered_json Json(const WorkerSummary& worker) {
  ordered_json json = {{"rank", worker.rank}, {"node", worker.node}};
  Put(json, "group", worker.group);
  json["steps"] = worker.steps;
  WholeNumber(json, "steps");
  json["own_steps"] = worker.own_steps;
  json["compute_seconds"] = worker.compute_seconds;
  json["wait_seconds"] = worker.wait_seconds;
  Put(json, "staleness_mean", worker.staleness_mean);
  return json;
}

ordered_json Json(const DataSummary& data) {
  ordered_json json = {{"files", data.files}, {"samples", data.samples}};
  Put(json, "sample", data.sample);
  Put(json, "read_as", data.read_as);
  if (data.classes > 0) json["classes"] = data.classes;
  for (const auto& [name, samples] : data.fewest) json["fewest_training_samples"][name] = samples;
  if (!data.left_out.empty()) json["left_out"] = data.left_out;
  if (!data.warnings.empty()) json["warnings"] = data.warnings;
  return json;
}

ordered_json Json(const DeathSummary& death) {
  return {{"worker", death.worker},
          {"node", death.node},
          {"seconds", death.seconds},
          {"own_steps", death.own_steps}};
}

ordered_json Json(const StalenessSummary& s) {
  ordered_json json = {{"max", s.max}, {"mean", s.mean}, {"histogram", s.histogram}};
  Put(json, "clock_lead_max", s.clock_lead_max);
  return json;
}

ordered_json Json(const ProtocolSummary& p) {
  ordered_json json = ordered_json::object();
  if (p.up_transfers_per_gradient) {
    json[kUpTransfers.name] = p.Total(kUpTransfers.name);
    json[kDownTransfers.name] = p.Total(kDownTransfers.name);
    json["up_transfers_per_gradient"] = *p.up_transfers_per_gradient;
  }
  for (const StrategyCounts::One& count : p.counts.all()) {
    if (count.value > 0) json[count.name] = count.value;
  }
  Put(json, "replica_spread", p.replica_spread);
  if (!p.idle_servers.empty()) json["idle_servers"] = p.idle_servers;
  return json;
}

ordered_json Json(const PlanSummary& plan) {
  ordered_json json = {{"buckets", plan.buckets}};
  Put(json, "predicted_seconds", plan.predicted_seconds);
  if (plan.drift) {
    const PlanSummary::Drift& drift = *plan.drift;
    json["drift"] = {
        {"step", drift.step},
        {"compute_seconds", {{"planned", drift.compute_planned}, {"seen", drift.compute_seen}}},
        {"sum_seconds", {{"planned", drift.sums_planned}, {"seen", drift.sums_seen}}}};
  }
  if (plan.replans > 0) json["replans"] = plan.replans;
  return json;
}

template <class T>
void PutJson(ordered_json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = Json(*value);
}

ordered_json Identity(const Summary& s) {
  ordered_json json = {
      {"status", s.status}, {"exit_code", s.exit_code}, {"schema", kSummarySchema}};
  Put(json, "strategy", s.strategy);
  Put(json, "compressor", s.compressor);
  Put(json, "collective", s.collective);
  Put(json, "model", s.model);
  Put(json, "dataset", s.dataset);
  Put(json, "device", s.device);
  Put(json, "precision", s.precision);
  Put(json, "compute", s.compute);
  json["workers"] = s.workers;
  Put(json, "servers", s.servers);
  json["global_batch"] = s.global_batch;
  json["epochs"] = s.epochs;
  json["steps"] = s.steps;
  Put(json, "step", s.step);
  Put(json, "resumed_step", s.resumed_step);
  json["seed"] = s.seed;
  return json;
}

const char* NameOf(Criterion measure) {
  if (measure == Criterion::kAccuracy) return "accuracy";
  return measure == Criterion::kPerplexity ? "perplexity" : "loss";
}

std::string Shown(Criterion measure, double value) {
  if (measure == Criterion::kAccuracy) return fmt::format("{:.2f} %", 100 * value);
  return measure == Criterion::kPerplexity ? fmt::format("{:.2f}", value)
                                           : fmt::format("{:.4g}", value);
}

ordered_json TrainJson(const Summary& summary) {
  ordered_json json;
  Put(json, "loss", summary.train_loss);
  Put(json, "mean_loss", summary.train_mean_loss);
  Put(json, "accuracy", summary.train_accuracy);
  return json;
}

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

StepSeconds StepSecondsOf(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  return {Quantile(seconds, 0.5), Quantile(seconds, 0.9), seconds.back()};
}

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

std::string ToJson(const Summary& summary) {
  ordered_json json = Identity(summary);
  PutJson(json, "data", summary.data);
  WholeNumber(json, "epochs");
  WholeNumber(json, "steps");
  json["seconds"] = summary.seconds;
  json["samples_per_second"] = summary.samples_per_second;
  PutJson(json, "step_seconds", summary.step_seconds);
  const ordered_json train = TrainJson(summary);
  if (!train.empty()) json["train"] = train;
  PutJson(json, "test", summary.test);
  PutJson(json, "best", summary.best);
  PutJson(json, "target", summary.target);
  PutJson(json, "communication", summary.communication);
  for (const WorkerSummary& worker : summary.workers_detail) {
    json["workers_detail"].push_back(Json(worker));
  }
  for (const DeathSummary& death : summary.deaths) json["deaths"].push_back(Json(death));
  PutJson(json, "staleness", summary.staleness);
  PutJson(json, "protocol", summary.protocol);
  PutJson(json, "plan", summary.plan);
  Put(json, "weights_sha256", summary.weights_sha256);
  Put(json, "config_sha256", summary.config_sha256);
  return JsonText(json, 2) + "\n";
}

void DescribeEnd(ExitCode code, Summary& summary) {
  summary.status = StatusOf(code);
  summary.exit_code = static_cast<int>(code);
}

void DescribeConfig(const RunConfig& config, Summary& summary) {
  summary.strategy = config.strategy_name;
  summary.compressor = config.compress.name;
  summary.workers = static_cast<int>(config.workers);
  const int servers = PlacementOf(config).servers;
  if (servers > 0) summary.servers = servers;
  summary.global_batch = config.batch;
  summary.seed = config.seed;
}

void DescribeTraining(const TrainedEpoch& epoch, const Graph& graph, Summary& summary) {
  if (epoch.samples == 0) return;
  const auto terms = static_cast<double>(std::max<int64_t>(epoch.terms, 1));
  summary.train_mean_loss = epoch.loss_sum / terms;
  if (graph.metric_names().empty() || epoch.correct < 0) return;
  summary.train_accuracy = static_cast<double>(epoch.correct) / static_cast<double>(epoch.samples);
}

void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary) {
  DescribeConfig(config, summary);
  if (plan.workers > 1 && PlacementOf(config).servers == 0) summary.collective = plan.collective;
  summary.model = graph.name();
  summary.dataset = config.data.name;
  summary.device = plan.device;
  summary.precision = config.precision;
  summary.compute = "real";
  summary.plan = PlanSummary{static_cast<int>(plan.buckets.size()), std::nullopt};
  if (plan.predicted_seconds > 0) summary.plan->predicted_seconds = plan.predicted_seconds;
  summary.config_sha256 = config.config_sha256;
}

void DescribeProtocol(const ProtocolReport& report, Summary& summary) {
  std::vector<int64_t> histogram = report.staleness;
  while (!histogram.empty() && histogram.back() == 0) histogram.pop_back();
  if (!histogram.empty()) {
    summary.staleness = StalenessSummary{.max = static_cast<int64_t>(histogram.size()) - 1,
                                         .mean = report.staleness_mean(),
                                         .histogram = std::move(histogram)};
    if (report.clock_lead_max >= 0) summary.staleness->clock_lead_max = report.clock_lead_max;
  }
  if (!report.counts.Any()) return;
  summary.protocol = ProtocolSummary{.counts = report.counts, .idle_servers = report.idle_servers};
  const int64_t up = report.Total(kUpTransfers.name);
  if (up == 0) return;
  const auto gradients = static_cast<double>(std::max<int64_t>(report.gradients(), 1));
  summary.protocol->up_transfers_per_gradient = static_cast<double>(up) / gradients;
}

void NameIdleServers(const Summary& summary) {
  if (!summary.protocol || summary.protocol->idle_servers.empty()) return;
  const std::vector<int64_t>& idle = summary.protocol->idle_servers;
  log::Info("idle, since no group is left for {}: server{} {}", idle.size() == 1 ? "it" : "them",
            idle.size() == 1 ? "" : "s", fmt::join(idle, ", "));
}

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report,
                              int64_t batch) {
  WorkerSummary worker;
  worker.rank = rank;
  worker.node = node;
  worker.steps =
      static_cast<double>(report.samples) / static_cast<double>(std::max<int64_t>(batch, 1));
  worker.own_steps = report.steps;
  worker.compute_seconds = ToSeconds(report.compute);
  worker.wait_seconds = ToSeconds(report.exchange.exposed);
  const ProtocolReport& protocol = report.exchange.worker;
  if (!protocol.staleness.empty()) worker.staleness_mean = protocol.staleness_mean();
  if (protocol.group >= 0) worker.group = static_cast<int>(protocol.group);
  return worker;
}

int64_t GradientsOf(const Summary& summary) {
  int64_t steps = 0;
  for (const WorkerSummary& worker : summary.workers_detail) steps += worker.own_steps;
  return steps;
}

void DescribeBytesPerGradient(Summary& summary) {
  const int64_t gradients = GradientsOf(summary);
  if (gradients == 0 || !summary.communication) return;
  summary.communication->bytes_per_gradient =
      static_cast<double>(summary.communication->bytes_sent) / static_cast<double>(gradients);
}

void DescribeCompression(const CompressionReport& report, double seconds,
                         CommunicationSummary& communication) {
  if (report.entries == 0) return;
  communication.compress_seconds = seconds;
  communication.density = report.density();
}

void GatherReports(Transport& transport, const RankReport& mine, int workers, int64_t batch,
                   Summary& summary) {
  const std::vector<std::string> all = Gather(transport, ToBytes(mine, HostName()));
  CommunicationSummary communication;
  ProtocolReport protocol;
  int64_t inside = 0, lent = 0;
  CompressionReport compression;
  Nanos compress = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    RankReport report;
    std::string node;
    reader(report, node);
    const ExchangeStats& exchange = report.exchange;
    const double wait = ToSeconds(exchange.exposed);
    communication.bytes_sent += exchange.traffic.bytes_sent;
    communication.bytes_received += exchange.traffic.bytes_received;
    communication.messages += exchange.traffic.messages;
    inside += exchange.traffic.bytes_inside;
    lent += exchange.traffic.bytes_lent;
    protocol.Add(exchange.protocol);
    compression.Add(exchange.compression);
    compress = std::max(compress, exchange.compression.time);
    if (static_cast<int>(rank) >= workers) continue;
    communication.exposed_seconds = std::max(communication.exposed_seconds, wait);
    summary.workers_detail.push_back(WorkerSummaryOf(static_cast<int>(rank), node, report, batch));
  }
  if (inside > 0) communication.bytes_inside_nodes = inside;
  if (lent > 0) communication.bytes_lent = lent;
  DescribeCompression(compression, ToSeconds(compress), communication);
  if (all.size() > 1 || compression.entries > 0) summary.communication = communication;
  DescribeBytesPerGradient(summary);
  DescribeProtocol(protocol, summary);
}

}  // namespace dtrain
