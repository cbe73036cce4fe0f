// How a layer says itself in ONNX's operators, as it is in evaluation: one function in its own folder.
//
//   layers/relu/relu_onnx.cc
//     void Translate(OnnxLayer& to) { to.Result("Relu", {to.input(0)}); }
//     DTRAIN_ONNX("relu", Translate);
//
// A layer without one is refused by name (translate_model.h).  Losses and metrics need none: they are left out.
//
// A decoder, whose steps follow from each other's answers, says one step (DTRAIN_ONNX_DECODER): the model then
// becomes two graphs, and the loop over words is the reader's.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/registry.h"
#include "framework/nn/graph.h"
#include "framework/onnx/onnx_graph.h"

namespace dtrain {

// A model and its numbers: arenas of Graph::weights() and Graph::state().
struct OnnxModel {
  const Graph& graph;
  const float* weights = nullptr;
  const float* state = nullptr;
};

// One layer on its way into a graph.
class OnnxLayer {
 public:
  // The names of its inputs and outputs in `graph`; shapes as in GraphValue's, with a batch of some size.
  OnnxLayer(OnnxGraph& graph, const GraphLayer& layer, const OnnxModel& model,
            std::vector<std::string> inputs, std::vector<Shape> shapes,
            std::vector<std::string> outputs)
      : graph_(graph),
        layer_(layer),
        model_(model),
        inputs_(std::move(inputs)),
        shapes_(std::move(shapes)),
        outputs_(std::move(outputs)) {}

  template <class L>
  const L& As() const {
    return static_cast<const L&>(*layer_.layer);
  }

  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::string& input(size_t i) const { return inputs_[i]; }
  // Of the batch axis, and of a sentence's, only that they are there is known.
  const Shape& shape(size_t i) const { return shapes_[i]; }

  // A parameter or statistic, by its place in Layer::Params() or State(), as a tensor of its own name.
  std::string Param(size_t place) const;
  std::string State(size_t place) const;
  // Its numbers, for a layer that rearranges them.
  std::span<const float> ParamValues(size_t place) const;

  // A constant of the layer's own; `what` tells it from its others.
  std::string Constant(const std::string& what, std::vector<int64_t> shape,
                       std::vector<float> values) const;
  std::string Constant(const std::string& what, std::vector<int64_t> values) const;  // of one axis
  std::string Scalar(const std::string& what, float value) const;

  // A node whose result has a name of its own; returns that.
  std::string Node(const std::string& op, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {}) const;
  // A node with several results; "" for one that nobody wants.
  void Nodes(const std::string& op, std::vector<std::string> inputs,
             std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes = {}) const;
  std::string NewName(const std::string& what) const;  // for a result of Nodes

  // The node that makes output `output`.
  void Result(const std::string& op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {}, size_t output = 0) const;

  // Throws UsageError: the layer has keys for which there is no translation.
  [[noreturn]] void Refuse(const std::string& why) const;

 private:
  std::string Keep(const std::string& name, OnnxTensor tensor) const;

  OnnxGraph& graph_;
  const GraphLayer& layer_;
  const OnnxModel& model_;
  const std::vector<std::string> inputs_;
  const std::vector<Shape> shapes_;
  const std::vector<std::string> outputs_;
};

// What a decoder's step takes and gives, beside the tokens.
struct OnnxDecoder {
  std::vector<std::string> inputs;  // names, for each input of the layer
  size_t tokens = 0;                // the input that becomes one token [N], not a sentence
  size_t state = 0;                 // the input that is the state [N, ...] before the first step
  std::string next_state;           // the name of output 1; output 0 are the scores [N, V]
};

struct OnnxEntry {
  std::function<void(OnnxLayer&)> translate;
  OnnxDecoder decoder = {};  // without inputs: the layer is none
};

using OnnxRegistry = Registry<OnnxEntry>;

}  // namespace dtrain

#define DTRAIN_ONNX(type, Translate)                   \
  [[maybe_unused]] static const bool onnx_registered = \
      ::dtrain::OnnxRegistry::Add(type, {Translate})
#define DTRAIN_ONNX_DECODER(type, TranslateStep, ...)  \
  [[maybe_unused]] static const bool onnx_registered = \
      ::dtrain::OnnxRegistry::Add(type, {TranslateStep, __VA_ARGS__})
