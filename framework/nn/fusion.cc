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

Call WithRelu(Call call) {
  call.fused_relu = true;
  return call;
}

bool ReluBehindCommuting(const Graph& graph, std::vector<Call>& calls, const Accepts& accepts) {
  for (Call& relu : calls) {
    if (!IsRelu(graph, relu)) continue;
    Call* pool = OnlyReader(calls, relu.output);
    if (pool == nullptr || pool->fused_relu) continue;
    if (graph.layers()[pool->layer].layer->max_windows() == nullptr || !accepts(WithRelu(*pool)))
      continue;
    pool->inputs = relu.inputs;
    pool->fused_relu = true;
    Remove(calls, &relu);
    return true;
  }
  return false;
}

bool ReluIntoProducer(const Graph& graph, std::vector<Call>& calls, const Accepts& accepts) {
  for (Call& producer : calls) {
    if (producer.fused_relu || IsRelu(graph, producer)) continue;
    Call* relu = OnlyReader(calls, producer.output);
    if (relu == nullptr || !IsRelu(graph, *relu) || !accepts(WithRelu(producer))) continue;
    producer.output = relu->output;
    producer.fused_relu = true;
    Remove(calls, relu);
    return true;
  }
  return false;
}

// Returns the call that makes `value`; null for an input of the model.
Call* ProducerOf(std::vector<Call>& calls, int value) {
  const auto it = std::ranges::find(calls, value, &Call::output);
  return it == calls.end() ? nullptr : &*it;
}

// Max pooling commutes with a ReLU, so the producer's may follow the maxima.
bool PoolingIntoProducer(const Graph& graph, std::vector<Call>& calls, const Accepts& accepts) {
  for (const Call& pool : calls) {
    if (graph.layers()[pool.layer].layer->max_windows() == nullptr || pool.pooling >= 0) continue;
    Call* const producer = ProducerOf(calls, pool.inputs[0]);
    if (producer == nullptr || producer->fused_sum || producer->pooling >= 0) continue;
    if (OnlyReader(calls, producer->output) != &pool) continue;
    Call fused = *producer;
    fused.output = pool.output;
    fused.fused_relu |= pool.fused_relu;
    fused.pooling = pool.layer;
    if (!accepts(fused)) continue;
    *producer = std::move(fused);
    Remove(calls, &pool);
    return true;
  }
  return false;
}

// The call that makes the last of the two terms takes the other, so that calls, and with them gradients, stay in their
// order.
bool SumIntoProducer(const Graph& graph, std::vector<Call>& calls, const Accepts& accepts) {
  for (const Call& sum : calls) {
    if (!graph.layers()[sum.layer].layer->adds_inputs() || sum.inputs.size() != 2) continue;
    Call* const makers[] = {ProducerOf(calls, sum.inputs[0]), ProducerOf(calls, sum.inputs[1])};
    const size_t last = makers[1] > makers[0] ? 1 : 0;  // null is before all
    Call* const producer = makers[last];
    if (producer == nullptr || producer->fused_relu || producer->fused_sum) continue;
    if (producer->pooling >= 0 || OnlyReader(calls, producer->output) != &sum) continue;
    Call fused = *producer;
    fused.inputs.push_back(sum.inputs[1 - last]);
    fused.output = sum.output;
    fused.fused_relu = sum.fused_relu;
    fused.fused_sum = true;
    if (!accepts(fused)) continue;
    *producer = std::move(fused);
    Remove(calls, &sum);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Call> CallsOf(const Graph& graph) {
  std::vector<Call> calls;
  for (size_t i = 0; i < graph.layers().size(); ++i) {
    const GraphLayer& layer = graph.layers()[i];
    calls.push_back({.layer = static_cast<int>(i), .inputs = layer.inputs, .output = layer.output});
  }
  return calls;
}

std::vector<Call> FuseAll(const Graph& graph, const Accepts& accepts) {
  std::vector<Call> calls = CallsOf(graph);
  while (ReluBehindCommuting(graph, calls, accepts)) {
  }
  while (ReluIntoProducer(graph, calls, accepts)) {
  }
  while (PoolingIntoProducer(graph, calls, accepts)) {
  }
  while (SumIntoProducer(graph, calls, accepts)) {
  }
  return calls;
}

}  // namespace dtrain
