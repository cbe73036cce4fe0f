#include "framework/core/execution_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr int kPlanSchema = 1;

std::vector<Range> BucketsFrom(const nlohmann::json& array, const std::string& where) {
  std::vector<Range> buckets;
  for (size_t i = 0; i < array.size(); ++i) {
    JsonFields fields(array[i], fmt::format("{}: buckets[{}]", where, i));
    buckets.push_back({fields.Count("begin"), fields.Count("end")});
    fields.RejectOthers();
    if (buckets.back().empty()) throw ConfigError(fields.where() + ": an empty range");
  }
  return buckets;
}

std::map<std::string, std::string> KernelsFrom(const nlohmann::json& object,
                                               const std::string& where) {
  std::map<std::string, std::string> kernels;
  JsonFields fields(object, where + ": kernels");
  for (const auto& [layer, value] : object.items()) kernels[layer] = fields.String(layer);
  return kernels;
}

std::vector<int> NodesFrom(const nlohmann::json& array, const std::string& where) {
  std::vector<int> nodes;
  for (const nlohmann::json& node : array) {
    const bool known = node.is_number_unsigned() && node.get<uint64_t>() < array.size();
    if (!known)
      throw ConfigError(where + ": node_of: not one node number per rank, counted from 0");
    nodes.push_back(node.get<int>());
  }
  return nodes;
}

template <class T>
void Compare(const char* name, const T& before, const T& after, std::vector<std::string>& out) {
  if (before != after) out.push_back(fmt::format("{} {} -> {}", name, before, after));
}

std::string KernelName(const ExecutionPlan& plan, const std::string& layer) {
  const auto it = plan.kernels.find(layer);
  return it == plan.kernels.end() ? "none" : it->second;
}

void CompareKernels(const ExecutionPlan& before, const ExecutionPlan& after,
                    std::vector<std::string>& out) {
  std::map<std::string, std::string> layers = before.kernels;
  layers.insert(after.kernels.begin(), after.kernels.end());
  for (const auto& [layer, kernel] : layers) {
    Compare(("kernel of " + layer).c_str(), KernelName(before, layer), KernelName(after, layer),
            out);
  }
}

std::string CostIn(const ExecutionPlan& plan) {
  const CompressCost& cost = plan.compress_cost;
  return cost.known() ? fmt::format("{} by {} ({:.8})", cost.compressor, cost.file, cost.sha256)
                      : "passes";
}

// The same numbers have the same effect, whatever file they are from.
void CompareCosts(const ExecutionPlan& before, const ExecutionPlan& after,
                  std::vector<std::string>& out) {
  const CompressCost &a = before.compress_cost, &b = after.compress_cost;
  if (a.compressor == b.compressor && a.samples == b.samples) return;
  out.push_back(fmt::format("compressor's cost {} -> {}", CostIn(before), CostIn(after)));
}

std::string NodesIn(const ExecutionPlan& plan) {
  return plan.node_of.empty() ? "none" : fmt::format("{}", fmt::join(plan.node_of, " "));
}

void CompareBuckets(const ExecutionPlan& before, const ExecutionPlan& after,
                    std::vector<std::string>& out) {
  if (before.buckets == after.buckets) return;
  if (before.buckets.size() != after.buckets.size()) {
    return Compare("buckets", before.buckets.size(), after.buckets.size(), out);
  }
  size_t i = 0;
  while (before.buckets[i] == after.buckets[i]) ++i;
  const Range a = before.buckets[i], b = after.buckets[i];
  out.push_back(fmt::format("bucket {} [{}, {}) -> [{}, {})", i, a.begin, a.end, b.begin, b.end));
}

}  // namespace

bool SameKernels(const ExecutionPlan& a, const ExecutionPlan& b) {
  return a.device == b.device && a.precision == b.precision;
}

std::string ToJson(const ExecutionPlan& plan) {
  ordered_json buckets = ordered_json::array();
  for (const Range& range : plan.buckets) {
    buckets.push_back({{"begin", range.begin}, {"end", range.end}});
  }
  ordered_json json = {
      {"schema", kPlanSchema},        {"device", plan.device},   {"isa", plan.isa},
      {"precision", plan.precision},  {"threads", plan.threads}, {"workers", plan.workers},
      {"collective", plan.collective}};
  if (!plan.gpu.empty()) json["gpu"] = plan.gpu;
  if (!plan.node_of.empty()) json["node_of"] = plan.node_of;
  json["chunk_bytes"] = plan.chunk_bytes;
  json["buckets"] = buckets;
  json["kernels"] = plan.kernels;
  if (!plan.measured_for.empty()) {
    json["measured_for"] = plan.measured_for;
    json["predicted_seconds"] = plan.predicted_seconds;
    json["compute_seconds"] = plan.compute_seconds;
    json["sum_seconds"] = plan.sum_seconds;
  }
  if (plan.compress_cost.known()) {
    json["compress_cost"] = ordered_json::parse(ToJson(plan.compress_cost));
  }
  return JsonText(json, 2) + "\n";
}

ExecutionPlan PlanFromJson(std::string_view text, const std::string& source) {
  const nlohmann::json json = ParseJson(text, source);
  JsonFields fields(json, source);
  fields.Schema(kPlanSchema);
  ExecutionPlan plan;
  plan.isa = fields.String("isa");
  // Older plans lack these keys.
  if (fields.Has("device")) plan.device = fields.String("device");
  if (fields.Has("gpu")) plan.gpu = fields.String("gpu");
  if (fields.Has("precision")) plan.precision = fields.String("precision");
  plan.threads = fields.SmallCount("threads");
  plan.workers = fields.SmallCount("workers");
  plan.collective = fields.String("collective");
  if (fields.Has("node_of")) plan.node_of = NodesFrom(fields.Array("node_of"), source);
  plan.chunk_bytes = fields.Count("chunk_bytes");
  plan.buckets = BucketsFrom(fields.Array("buckets"), source);
  if (fields.Has("measured_for")) {
    plan.measured_for = fields.String("measured_for");
    if (plan.measured_for.empty()) throw ConfigError(source + ": measured_for: no strategy");
    plan.predicted_seconds = fields.Amount("predicted_seconds");
    if (fields.Has("compute_seconds")) plan.compute_seconds = fields.Amount("compute_seconds");
    if (fields.Has("sum_seconds")) plan.sum_seconds = fields.Amount("sum_seconds");
  }
  if (fields.Has("compress_cost")) {
    plan.compress_cost =
        CompressCostFromJson(fields.Object("compress_cost").dump(), source + ": compress_cost");
  }
  plan.kernels = KernelsFrom(fields.Object("kernels"), source);
  fields.RejectOthers();
  return plan;
}

ExecutionPlan ReadPlan(const std::filesystem::path& path) {
  return PlanFromJson(ReadFile(path), path.string());
}

std::string Differences(const ExecutionPlan& before, const ExecutionPlan& after) {
  std::vector<std::string> out;
  Compare("device", before.device, after.device, out);
  if (before.device == after.device) Compare("gpu", before.gpu, after.gpu, out);
  Compare("isa", before.isa, after.isa, out);
  Compare("precision", before.precision, after.precision, out);
  Compare("threads", before.threads, after.threads, out);
  Compare("workers", before.workers, after.workers, out);
  Compare("collective", before.collective, after.collective, out);
  Compare("nodes", NodesIn(before), NodesIn(after), out);
  Compare("chunk_bytes", before.chunk_bytes, after.chunk_bytes, out);
  CompareBuckets(before, after, out);
  CompareCosts(before, after, out);
  CompareKernels(before, after, out);
  return Join(out);
}

}  // namespace dtrain
