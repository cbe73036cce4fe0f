// Exports one step of the decoder (attention_decoder.h) as ONNX operators.  The inputs are the layer's, with one token
// per sentence; the outputs are the scores for the next token and the new state.
#include <limits>

#include "framework/onnx/recurrent_onnx.h"
#include "layers/attention_decoder/attention_decoder.h"

namespace dtrain {
namespace {

enum Input { kEncoderOutputs, kState, kSource, kToken };

class Step {
 public:
  explicit Step(OnnxLayer& to) : to_(to), layer_(to.As<AttentionDecoder>()) {}

  void Translate() const {
    const std::string e =
        to_.Node("Gather", {to_.Param(AttentionDecoder::kEmbedding), to_.input(kToken)});
    const std::string c = Context();
    NextState(e, c);
    const std::string features = to_.Node("Concat", {kNextState, c, e}, {{"axis", int64_t{1}}});
    to_.Result(
        "Gemm",
        {features, to_.Param(AttentionDecoder::kOutWeight), to_.Param(AttentionDecoder::kOutBias)},
        {{"transB", int64_t{1}}});
  }

  static constexpr const char* kNextState = "next_state";

 private:
  std::string Axis(int64_t axis) const {
    return to_.Constant("axis_" + std::to_string(axis), std::vector<int64_t>{axis});
  }

  // Returns columns [begin, end) of attn's weight, transposed: [end - begin, A].
  std::string AttnColumns(const std::string& what, int64_t begin, int64_t end) const {
    const int64_t rows = layer_.attention();
    const auto values = to_.ParamValues(AttentionDecoder::kAttnWeight);
    const int64_t width = static_cast<int64_t>(values.size()) / rows;
    std::vector<float> turned;
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        turned.push_back(values[static_cast<size_t>(row * width + column)]);
      }
    }
    return to_.Constant(what, {end - begin, rows}, std::move(turned));
  }

  // Returns the scores [N, S].
  std::string Scores() const {
    const int64_t H = layer_.hidden(), C = to_.shape(kEncoderOutputs)[2];
    const std::string query =
        to_.Node("MatMul", {to_.input(kState), AttnColumns("attn.state", 0, H)});
    const std::string keys = to_.Node(
        "Add",
        {to_.Node("MatMul", {to_.input(kEncoderOutputs), AttnColumns("attn.encoder", H, H + C)}),
         to_.Param(AttentionDecoder::kAttnBias)});
    const std::string energy =
        to_.Node("Tanh", {to_.Node("Add", {keys, to_.Node("Unsqueeze", {query, Axis(1)})})});
    const auto v = to_.ParamValues(AttentionDecoder::kV);
    const std::string column =
        to_.Constant("v", {layer_.attention(), 1}, std::vector(v.begin(), v.end()));
    return to_.Node("Squeeze", {to_.Node("MatMul", {energy, column}), Axis(2)});
  }

  // Returns the context [N, C]; padding of the source has weight 0.
  std::string Context() const {
    const std::string is_pad = to_.Node(
        "Equal", {to_.input(kSource), to_.Constant("pad", std::vector<int64_t>{layer_.pad()})});
    const std::string lowest = to_.Scalar("lowest", std::numeric_limits<float>::lowest());
    const std::string weights = to_.Node("Softmax", {to_.Node("Where", {is_pad, lowest, Scores()})},
                                         {{"axis", int64_t{1}}});
    const std::string row = to_.Node("Unsqueeze", {weights, Axis(1)});
    return to_.Node("Squeeze", {to_.Node("MatMul", {row, to_.input(kEncoderOutputs)}), Axis(1)});
  }

  // Computes the next state with ONNX's GRU on a sequence of length one.
  void NextState(const std::string& e, const std::string& c) const {
    const std::string x = to_.Node("Concat", {e, c}, {{"axis", int64_t{1}}});
    std::vector<std::string> inputs = {to_.Node("Unsqueeze", {x, Axis(0)})};
    const OnnxCell cell{layer_.hidden(), kOnnxGruGates, {AttentionDecoder::kWeightIn}};
    for (const std::string& tensor : OnnxCellWeights(to_, cell, "rnn")) inputs.push_back(tensor);
    inputs.insert(inputs.end(), {"", to_.Node("Unsqueeze", {to_.input(kState), Axis(0)})});
    std::vector<OnnxAttribute> attributes = kOnnxGruAttributes;
    attributes.push_back({"hidden_size", layer_.hidden()});
    const std::string last = to_.NewName("last");
    to_.Nodes("GRU", std::move(inputs), {"", last}, std::move(attributes));
    to_.Result("Squeeze", {last, Axis(0)}, {}, 1);
  }

  OnnxLayer& to_;
  const AttentionDecoder& layer_;
};

void TranslateAttentionDecoder(OnnxLayer& to) { Step(to).Translate(); }

DTRAIN_ONNX_DECODER("attention_decoder", TranslateAttentionDecoder,
                    {.inputs = {"encoder_outputs", "state", "source", "token"},
                     .tokens = kToken,
                     .state = kState,
                     .next_state = Step::kNextState});

}  // namespace
}  // namespace dtrain
