// A layer's translation to ONNX's operators, in evaluation mode, is one function in its own folder.
//
//   layers/dropout/dropout_onnx.cc
//     void TranslateDropout(OnnxLayer& to) { to.Result("Identity", {to.input(0)}); }
//     DTRAIN_ONNX("dropout", TranslateDropout);
//
// A model with a layer without one cannot be exported (translate_model.h).  Losses and metrics need none: they are left
// out.
//
// A decoder, each step of which depends on the step before, translates one step (DTRAIN_ONNX_DECODER): the model then
// becomes two graphs, and the program that runs them must loop over the words.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/registry.h"
#include "framework/nn/graph.h"
#include "framework/onnx/onnx_graph.h"

namespace dtrain {

// Refers to a model and its values: the arenas of Graph::weights() and Graph::state().
struct OnnxModel {
  const Graph& graph;
  const float* weights = nullptr;
  const float* state = nullptr;
};

// Represents one layer that is being translated into a graph.
class OnnxLayer {
 public:
  // `inputs` and `outputs` are the names in `graph`; shapes as in GraphValue's, with a batch of some size.
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
  // The extents of the batch axis, and of a sentence's axis, are arbitrary.
  const Shape& shape(size_t i) const { return shapes_[i]; }

  // Add a parameter or statistic, by its index in Layer::Params() or State(), as a tensor; return its name.
  std::string Param(size_t place) const;
  std::string State(size_t place) const;
  // Returns a parameter's values, for a layer that rearranges them.
  std::span<const float> ParamValues(size_t place) const;

  // Adds a constant of the layer; `what` distinguishes its constants.
  std::string Constant(const std::string& what, std::vector<int64_t> shape,
                       std::vector<float> values) const;
  std::string Constant(const std::string& what, std::vector<int64_t> values) const;  // one axis
  std::string Scalar(const std::string& what, float value) const;

  // Adds a node whose result gets a new name, and returns that.
  std::string Node(const std::string& op, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {}) const;
  // Adds a node with several results; "" for an unused one.
  void Nodes(const std::string& op, std::vector<std::string> inputs,
             std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes = {}) const;
  std::string NewName(const std::string& what) const;  // for a result of Nodes

  // Adds the node that computes output `output`.
  void Result(const std::string& op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {}, size_t output = 0) const;

  // Throws UsageError for a layer whose keys cannot be translated.
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

// Names the inputs and outputs of a decoder's step, besides the tokens.
struct OnnxDecoder {
  std::vector<std::string> inputs;  // name of each input of the layer
  size_t tokens = 0;                // the input that becomes one token [N], not a sentence
  size_t state = 0;                 // the input that is the state [N, ...] before the first step
  std::string next_state;           // the name of output 1; output 0 are the scores [N, V]
};

struct OnnxEntry {
  std::function<void(OnnxLayer&)> translate;
  OnnxDecoder decoder = {};  // no inputs: the layer is no decoder
};

using OnnxRegistry = Registry<OnnxEntry>;

}  // namespace dtrain

#define DTRAIN_ONNX(type, Translate)                               \
  [[maybe_unused]] static const bool Translate##_onnx_registered = \
      ::dtrain::OnnxRegistry::Add(type, {Translate})
#define DTRAIN_ONNX_DECODER(type, TranslateStep, ...)                  \
  [[maybe_unused]] static const bool TranslateStep##_onnx_registered = \
      ::dtrain::OnnxRegistry::Add(type, {TranslateStep, __VA_ARGS__})
