// A whole net in double, made of its layers' references.  Compiled nets are compared with it.
#pragma once

#include <vector>

#include "framework/nn/graph.h"
#include "framework/nn/layer_case.h"

namespace dtrain {

struct ReferenceResult {
  double loss_sum = 0;
  std::vector<double> gradients;   // in the order of Graph::weights(); training only
  std::vector<double> next_state;  // in the order of Graph::state()
};

// The keys of the net's random numbers, apart from the indices of layers and samples.
struct ReferenceKeys {
  uint64_t seed = 0, step = 0;
};

inline RefTensor Zeros(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<size_t>(shape.count()))};
}

inline std::vector<float> InitialWeights(const Graph& graph, uint64_t seed) {
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(seed, weights.data());
  return weights;
}

// Runs one step.  `inputs` are batches for Graph::inputs(); the loss gradient is scaled by 1 /
// samples.
ReferenceResult ReferenceStep(const Graph& graph, Mode mode, const std::vector<double>& weights,
                              const std::vector<double>& state,
                              const std::vector<RefTensor>& inputs, const ReferenceKeys& keys = {});

}  // namespace dtrain
