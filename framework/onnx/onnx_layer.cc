#include "framework/onnx/onnx_layer.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

std::string OnnxLayer::Keep(const std::string& name, OnnxTensor tensor) const {
  if (std::ranges::find(graph_.tensors, name, &OnnxTensor::name) == graph_.tensors.end()) {
    tensor.name = name;
    graph_.tensors.push_back(std::move(tensor));
  }
  return name;
}

std::span<const float> OnnxLayer::ParamValues(size_t place) const {
  const Range range =
      model_.graph.weights().entries[static_cast<size_t>(layer_.first_param) + place].range;
  return {model_.weights + range.begin, static_cast<size_t>(range.size())};
}

std::string OnnxLayer::Param(size_t place) const {
  const ParamSpec& spec = layer_.params[place];
  const auto values = ParamValues(place);
  return Keep(layer_.name + "." + spec.name,
              {"", spec.shape.extents(), std::vector(values.begin(), values.end())});
}

std::string OnnxLayer::State(size_t place) const {
  const StateSpec& spec = layer_.states[place];
  const Range range =
      model_.graph.state().entries[static_cast<size_t>(layer_.first_state) + place].range;
  return Keep(layer_.name + "." + spec.name,
              {"", spec.shape.extents(),
               std::vector(model_.state + range.begin, model_.state + range.end)});
}

std::string OnnxLayer::Constant(const std::string& what, std::vector<int64_t> shape,
                                std::vector<float> values) const {
  return Keep(layer_.name + "." + what, {"", std::move(shape), std::move(values)});
}

std::string OnnxLayer::Constant(const std::string& what, std::vector<int64_t> values) const {
  const auto count = static_cast<int64_t>(values.size());
  return Keep(layer_.name + "." + what, {"", {count}, std::move(values)});
}

std::string OnnxLayer::Scalar(const std::string& what, float value) const {
  return Constant(what, {}, {value});
}

std::string OnnxLayer::NewName(const std::string& what) const {
  return fmt::format("{}/{}_{}", layer_.name, what, graph_.nodes.size());
}

std::string OnnxLayer::Node(const std::string& op, std::vector<std::string> inputs,
                            std::vector<OnnxAttribute> attributes) const {
  const std::string result = NewName(op);
  Nodes(op, std::move(inputs), {result}, std::move(attributes));
  return result;
}

void OnnxLayer::Nodes(const std::string& op, std::vector<std::string> inputs,
                      std::vector<std::string> outputs,
                      std::vector<OnnxAttribute> attributes) const {
  graph_.nodes.push_back({op, std::move(inputs), std::move(outputs), std::move(attributes)});
}

void OnnxLayer::Result(const std::string& op, std::vector<std::string> inputs,
                       std::vector<OnnxAttribute> attributes, size_t output) const {
  Nodes(op, std::move(inputs), {outputs_[output]}, std::move(attributes));
}

void OnnxLayer::Refuse(const std::string& why) const {
  throw UsageError(fmt::format("layer '{}' of type {} cannot be exported to ONNX: {}", layer_.name,
                               layer_.type, why));
}

}  // namespace dtrain
