#include "framework/nn/program.h"

#include <algorithm>

namespace dtrain {
namespace {

bool IsRelu(const Graph& graph, const Call& call) {
  return graph.layers()[call.layer].type == "relu";
}

// Returns the only call that reads `value`, or null if there are several or none.
Call* OnlyReader(std::vector<Call>& calls, int value) {
  Call* reader = nullptr;
  for (Call& call : calls) {
    const auto uses = std::count(call.inputs.begin(), call.inputs.end(), value);
    if (uses == 0) continue;
    if (reader != nullptr || uses > 1) return nullptr;
    reader = &call;
  }
  return reader;
}

void Remove(std::vector<Call>& calls, const Call* dead) {
  calls.erase(calls.begin() + (dead - calls.data()));
}

bool ReluBehindCommuting(const Graph& graph, std::vector<Call>& calls, const AcceptsRelu& accepts) {
  for (Call& relu : calls) {
    if (!IsRelu(graph, relu)) continue;
    Call* pool = OnlyReader(calls, relu.output);
    if (pool == nullptr || pool->fused_relu) continue;
    if (!graph.layers()[pool->layer].layer->commutes_with_relu() || !accepts(*pool)) continue;
    pool->inputs = relu.inputs;
    pool->fused_relu = true;
    Remove(calls, &relu);
    return true;
  }
  return false;
}

bool ReluIntoProducer(const Graph& graph, std::vector<Call>& calls, const AcceptsRelu& accepts) {
  for (Call& producer : calls) {
    if (producer.fused_relu || IsRelu(graph, producer)) continue;
    Call* relu = OnlyReader(calls, producer.output);
    if (relu == nullptr || !IsRelu(graph, *relu) || !accepts(producer)) continue;
    producer.output = relu->output;
    producer.fused_relu = true;
    Remove(calls, relu);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Call> CallsOf(const Graph& graph) {
  std::vector<Call> calls;
  for (size_t i = 0; i < graph.layers().size(); ++i) {
    const GraphLayer& layer = graph.layers()[i];
    calls.push_back({static_cast<int>(i), false, layer.inputs, layer.output});
  }
  return calls;
}

std::vector<Call> FuseAll(const Graph& graph, const AcceptsRelu& accepts_relu) {
  std::vector<Call> calls = CallsOf(graph);
  while (ReluBehindCommuting(graph, calls, accepts_relu)) {
  }
  while (ReluIntoProducer(graph, calls, accepts_relu)) {
  }
  return calls;
}

}  // namespace dtrain
