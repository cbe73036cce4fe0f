#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "framework/results/summary.h"

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
  Put(json, "guess_loss", test.guess_loss);
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
  Put(json, "skipped_steps", s.skipped_steps);
  json["seed"] = s.seed;
  return json;
}

ordered_json TrainJson(const Summary& summary) {
  ordered_json json;
  Put(json, "loss", summary.train_loss);
  Put(json, "mean_loss", summary.train_mean_loss);
  Put(json, "accuracy", summary.train_accuracy);
  return json;
}

}  // namespace

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

}  // namespace dtrain
