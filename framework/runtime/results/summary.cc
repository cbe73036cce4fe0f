#include "framework/runtime/results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

using nlohmann::ordered_json;

void Put(ordered_json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

template <class T>
void Put(ordered_json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

ordered_json Json(const StepSeconds& s) { return {{"p50", s.p50}, {"p90", s.p90}, {"max", s.max}}; }

ordered_json Json(const TestResult& test) {
  ordered_json json = {{"loss", test.loss}};
  Put(json, "accuracy", test.accuracy);
  Put(json, "perplexity", test.perplexity);
  Put(json, "bleu", test.bleu);
  for (const auto& [name, value] : test.others) json[name] = value;
  return json;
}

ordered_json Json(const BestResult& best) {
  ordered_json json = {{"epoch", best.epoch}};
  Put(json, "accuracy", best.accuracy);
  Put(json, "bleu", best.bleu);
  Put(json, "perplexity", best.perplexity);
  for (const auto& [name, value] : best.others) json[name] = value;
  return json;
}

ordered_json Json(const CommunicationSummary& c) {
  return {{"bytes_sent", c.bytes_sent},
          {"bytes_received", c.bytes_received},
          {"messages", c.messages},
          {"exposed_seconds", c.exposed_seconds},
          {"compress_seconds", c.compress_seconds},
          {"density", c.density}};
}

ordered_json Json(const WorkerSummary& worker) {
  ordered_json json = {{"rank", worker.rank}, {"node", worker.node}};
  Put(json, "group", worker.group);
  json["steps"] = worker.steps;
  json["compute_seconds"] = worker.compute_seconds;
  json["wait_seconds"] = worker.wait_seconds;
  Put(json, "staleness_mean", worker.staleness_mean);
  return json;
}

ordered_json Json(const StalenessSummary& s) {
  return {{"max", s.max},
          {"mean", s.mean},
          {"histogram", s.histogram},
          {"clock_lead_max", s.clock_lead_max}};
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
  ordered_json json = {{"status", s.status}, {"exit_code", s.exit_code}};
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
  json["seed"] = s.seed;
  return json;
}

// Whole numbers print as such (steps of a synchronous run, say).
void WholeNumber(ordered_json& json, const char* key) {
  const double value = json[key].get<double>();
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    json[key] = static_cast<int64_t>(value);
  }
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

std::string TestText(const TestResult& test) {
  std::string text = "test";
  if (test.accuracy) text += fmt::format(" accuracy {:.2f} %,", 100 * *test.accuracy);
  for (const auto& [name, value] : test.others) {
    text += fmt::format(" {} {:.2f} %,", name, 100 * value);
  }
  if (test.perplexity) text += fmt::format(" perplexity {:.2f},", *test.perplexity);
  text += fmt::format(" loss {:.4f}", test.loss);
  if (test.bleu) text += fmt::format(", BLEU {:.2f}", *test.bleu);
  return text;
}

std::string ToJson(const Summary& summary) {
  ordered_json json = Identity(summary);
  WholeNumber(json, "epochs");
  WholeNumber(json, "steps");
  json["seconds"] = summary.seconds;
  json["samples_per_second"] = summary.samples_per_second;
  PutJson(json, "step_seconds", summary.step_seconds);
  if (summary.train_loss) json["train"] = {{"loss", *summary.train_loss}};
  PutJson(json, "test", summary.test);
  PutJson(json, "best", summary.best);
  PutJson(json, "communication", summary.communication);
  for (const WorkerSummary& worker : summary.workers_detail) {
    json["workers_detail"].push_back(Json(worker));
  }
  PutJson(json, "staleness", summary.staleness);
  PutJson(json, "plan", summary.plan);
  Put(json, "weights_sha256", summary.weights_sha256);
  Put(json, "config_sha256", summary.config_sha256);
  return json.dump(2) + "\n";
}

}  // namespace dtrain
