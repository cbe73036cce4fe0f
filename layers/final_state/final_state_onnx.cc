// The final state in ONNX's operators: the forward pass at the last word, the backward pass at the first.
#include "framework/onnx/recurrent_onnx.h"
#include "layers/final_state/final_state.h"

namespace dtrain {
namespace {

// Columns [begin, end) of x.
std::string Columns(const OnnxLayer& to, int64_t begin, int64_t end) {
  const auto at = [&](int64_t i) {
    return to.Constant("at_" + std::to_string(i), std::vector<int64_t>{i});
  };
  return to.Node("Slice", {to.input(0), at(begin), at(end), at(2)});
}

// int64 [N, 1]: the place of the last word; 0 where there is none.
std::string LastWord(const OnnxLayer& to) {
  const std::string lengths = to.Node(
      "Cast", {OnnxLengths(to, to.input(1), to.As<FinalState>().pad())}, {{"to", kOnnxInt64}});
  const std::string last = to.Node("Sub", {lengths, to.Constant("one", std::vector<int64_t>{1})});
  const std::string inside = to.Node("Max", {last, to.Constant("zero", std::vector<int64_t>{0})});
  return to.Node("Unsqueeze", {inside, to.Constant("time", {1})});
}

void Translate(OnnxLayer& to) {
  const int64_t width = to.shape(0)[2];
  const std::vector<OnnxAttribute> by_sentence = {{"batch_dims", int64_t{1}}};
  if (!to.As<FinalState>().bidirectional()) {
    return to.Result("GatherND", {to.input(0), LastWord(to)}, by_sentence);
  }
  const std::string forward =
      to.Node("GatherND", {Columns(to, 0, width / 2), LastWord(to)}, by_sentence);
  // A row of one word, whose axis goes.
  const std::string first =
      to.Node("Slice", {Columns(to, width / 2, width), to.Constant("zero", std::vector<int64_t>{0}),
                        to.Constant("one", std::vector<int64_t>{1}), to.Constant("time", {1})});
  const std::string backward = to.Node("Squeeze", {first, to.Constant("time", {1})});
  to.Result("Concat", {forward, backward}, {{"axis", int64_t{1}}});
}

DTRAIN_ONNX("final_state", Translate);

}  // namespace
}  // namespace dtrain
