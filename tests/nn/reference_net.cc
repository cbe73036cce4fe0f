#include "tests/nn/reference_net.h"

#include <algorithm>

namespace dtrain {
namespace {

RefTensor Cut(const std::vector<double>& arena, const ArenaEntry& entry) {
  return {Shape(entry.shape), {arena.begin() + entry.range.begin, arena.begin() + entry.range.end}};
}

void Paste(const RefTensor& tensor, const ArenaEntry& entry, std::vector<double>& arena) {
  std::copy(tensor.values.begin(), tensor.values.end(), arena.begin() + entry.range.begin);
}

class ReferenceNet {
 public:
  ReferenceNet(const Graph& graph, Mode mode, const std::vector<double>& weights,
               const std::vector<double>& state, const std::vector<RefTensor>& inputs,
               const ReferenceKeys& keys)
      : graph_(graph), mode_(mode), keys_(keys), weights_(weights), state_(state), values_(inputs) {
    result_.gradients.resize(weights.size());
    result_.next_state = state;
    values_.resize(graph.values().size());
  }

  ReferenceResult Run() {
    for (const GraphLayer& layer : graph_.layers()) calls_.push_back(Forward(layer));
    for (const RefTensor& value : values_) gradients_.push_back(Zeros(value.shape));
    if (mode_ == Mode::kTrain) {
      for (size_t l = graph_.layers().size(); l-- > 0;) Backward(graph_.layers()[l], calls_[l]);
    }
    return result_;
  }

 private:
  static std::unique_ptr<LayerReference> ReferenceOf(const GraphLayer& layer) {
    return LayerCaseRegistry::Get("layer with cases", layer.type).reference();
  }

  RefArgs Forward(const GraphLayer& layer) {
    const int64_t samples = values_[0].shape[0];
    RefArgs args;
    args.mode = layer.frozen && !layer.states.empty() ? Mode::kEvaluate : mode_;
    args.loss_scale = 1.0 / static_cast<double>(samples);
    args.seed = keys_.seed;
    args.step = keys_.step;
    args.layer_index = calls_.size();
    for (const int input : layer.inputs) args.inputs.push_back(values_[input]);
    for (size_t p = 0; p < layer.params.size(); ++p) {
      args.params.push_back(Cut(weights_, graph_.weights().entries[layer.first_param + p]));
      args.param_gradients.push_back(Zeros(layer.params[p].shape));
    }
    for (size_t s = 0; s < layer.states.size(); ++s) {
      args.state.push_back(Cut(state_, graph_.state().entries[layer.first_state + s]));
    }
    args.next_state = args.state;
    args.outputs = {Zeros(graph_.values()[layer.output].sample_shape.Prepend(samples))};
    ReferenceOf(layer)->Forward(*layer.layer, args);
    values_[layer.output] = args.outputs[0];
    for (size_t s = 0; s < layer.states.size(); ++s) {
      Paste(args.next_state[s], graph_.state().entries[layer.first_state + s], result_.next_state);
    }
    if (layer.layer->role() != LayerRole::kLoss) return args;
    for (const double loss : args.outputs[0].values) result_.loss_sum += loss;
    return args;
  }

  void Backward(const GraphLayer& layer, RefArgs& args) {
    if (layer.layer->role() == LayerRole::kMetric) return;
    args.output_gradients = {gradients_[layer.output]};
    for (const RefTensor& input : args.inputs) args.input_gradients.push_back(Zeros(input.shape));
    ReferenceOf(layer)->Backward(*layer.layer, args);
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (!layer.layer->InputHasGradient(static_cast<int>(i))) continue;
      std::vector<double>& sum = gradients_[layer.inputs[i]].values;
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += args.input_gradients[i].values[k];
    }
    for (size_t p = 0; p < layer.params.size() && !layer.frozen; ++p) {
      Paste(args.param_gradients[p], graph_.weights().entries[layer.first_param + p],
            result_.gradients);
    }
  }

  const Graph& graph_;
  const Mode mode_;
  const ReferenceKeys keys_;
  const std::vector<double>& weights_;
  const std::vector<double>& state_;
  std::vector<RefTensor> values_, gradients_;  // by graph value
  std::vector<RefArgs> calls_;                 // by layer
  ReferenceResult result_;
};

}  // namespace

ReferenceResult ReferenceStep(const Graph& graph, Mode mode, const std::vector<double>& weights,
                              const std::vector<double>& state,
                              const std::vector<RefTensor>& inputs, const ReferenceKeys& keys) {
  return ReferenceNet(graph, mode, weights, state, inputs, keys).Run();
}

}  // namespace dtrain
