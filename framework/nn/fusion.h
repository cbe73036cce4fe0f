// Fusion passes: the one place where the calls of a program stop being the layers of the graph.
//
// Each pass takes the list of calls and returns a shorter one that computes the same values:
//   ReluIntoProducer       A -> relu            =>  A with fused_relu, where a kernel of A takes it
//   ReluBehindCommuting    A -> relu -> maxpool =>  A -> maxpool with fused_relu: max(0, .) and max
//                          commute, gradients included, and the pooled map is smaller
#pragma once

#include <functional>
#include <vector>

#include "framework/nn/graph.h"

namespace dtrain {

// A layer to be run, on graph values.
struct Call {
  int layer = 0;  // index into Graph::layers()
  bool fused_relu = false;
  std::vector<int> inputs;  // graph values
  int output = 0;
};

// Whether some kernel of this call can take fused_relu.
using AcceptsRelu = std::function<bool(const Call&)>;

std::vector<Call> CallsOf(const Graph& graph);
std::vector<Call> FuseAll(const Graph& graph, const AcceptsRelu& accepts_relu);

}  // namespace dtrain
