#include "framework/onnx/recurrent_onnx.h"

#include <fmt/format.h>

#include "framework/nn/recurrent_layer.h"

namespace dtrain {
namespace {

// Appends the gates of [G H, ...] in ONNX's order.
void AppendGates(std::span<const float> from, const std::vector<size_t>& gates,
                 std::vector<float>& to) {
  const size_t size = from.size() / gates.size();
  for (const size_t gate : gates) {
    const auto part = from.subspan(gate * size, size);
    to.insert(to.end(), part.begin(), part.end());
  }
}

OnnxCell CellOf(const RecurrentLayer& layer, int64_t k, const std::vector<size_t>& gates) {
  OnnxCell cell{layer.hidden(), gates, {}};
  for (int64_t d = 0; d < layer.directions(); ++d) {
    cell.first_param.push_back(layer.ParamOf(k, d, RecurrentLayer::kWeightIn));
  }
  return cell;
}

}  // namespace

std::string OnnxLengths(const OnnxLayer& to, const std::string& tokens, int64_t pad) {
  const std::string is_pad = to.Node("Equal", {tokens, to.Constant("pad", {pad})});
  const std::string is_word = to.Node("Cast", {to.Node("Not", {is_pad})}, {{"to", kOnnxInt32}});
  return to.Node("ReduceSum", {is_word, to.Constant("time", {1})}, {{"keepdims", int64_t{0}}});
}

std::vector<std::string> OnnxCellWeights(const OnnxLayer& to, const OnnxCell& cell,
                                         const std::string& name) {
  const auto directions = static_cast<int64_t>(cell.first_param.size());
  const int64_t rows = static_cast<int64_t>(cell.gates.size()) * cell.hidden;
  std::vector<float> in, state, bias;
  for (const size_t first : cell.first_param) {
    AppendGates(to.ParamValues(first + RecurrentLayer::kWeightIn), cell.gates, in);
    AppendGates(to.ParamValues(first + RecurrentLayer::kWeightState), cell.gates, state);
    AppendGates(to.ParamValues(first + RecurrentLayer::kBiasIn), cell.gates, bias);
    AppendGates(to.ParamValues(first + RecurrentLayer::kBiasState), cell.gates, bias);
  }
  const int64_t features = static_cast<int64_t>(in.size()) / (directions * rows);
  return {to.Constant(name + ".weight_ih", {directions, rows, features}, std::move(in)),
          to.Constant(name + ".weight_hh", {directions, rows, cell.hidden}, std::move(state)),
          to.Constant(name + ".bias", {directions, 2 * rows}, std::move(bias))};
}

void TranslateRecurrent(OnnxLayer& to, const std::string& op, const std::vector<size_t>& gates,
                        const std::vector<OnnxAttribute>& attributes) {
  const auto& layer = to.As<RecurrentLayer>();
  const std::string lengths = OnnxLengths(to, to.input(1), layer.pad());
  std::vector<OnnxAttribute> all = attributes;
  all.push_back({"hidden_size", layer.hidden()});
  all.push_back({"direction", std::string(layer.directions() == 2 ? "bidirectional" : "forward")});
  std::string x = to.Node("Transpose", {to.input(0)}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  for (int64_t k = 0; k < layer.layers(); ++k) {
    std::vector<std::string> inputs = {x};
    const auto weights = OnnxCellWeights(to, CellOf(layer, k, gates), fmt::format("l{}", k));
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    inputs.push_back(lengths);
    // The output [T, D, N, H] becomes [T, N, D H], and after the last layer [N, T, D H].
    const bool last = k + 1 == layer.layers();
    const std::string turned = to.Node(
        "Transpose", {to.Node(op, inputs, all)},
        {{"perm", last ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{0, 2, 1, 3}}});
    const std::string joined = to.Constant("joined", {0, 0, layer.directions() * layer.hidden()});
    if (last) {
      to.Result("Reshape", {turned, joined});
    } else {
      x = to.Node("Reshape", {turned, joined});
    }
  }
}

}  // namespace dtrain
