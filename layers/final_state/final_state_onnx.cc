// Exports the final state as ONNX operators: the forward direction's state at the last word, the reverse direction's at
// the first.
#include "framework/onnx/recurrent_onnx.h"
#include "layers/final_state/final_state.h"

namespace dtrain {
namespace {

// Returns columns [begin, end) of x.
std::string Columns(const OnnxLayer& to, int64_t begin, int64_t end) {
  const auto at = [&](int64_t i) {
    return to.Constant("at_" + std::to_string(i), std::vector<int64_t>{i});
  };
  return to.Node("Slice", {to.input(0), at(begin), at(end), at(2)});
}

// Returns the index of the last word, or 0 if there is none, as int64 [N, 1].
std::string LastWord(const OnnxLayer& to) {
  const std::string lengths = to.Node(
      "Cast", {OnnxLengths(to, to.input(1), to.As<FinalState>().pad())}, {{"to", kOnnxInt64}});
  const std::string last = to.Node("Sub", {lengths, to.Constant("one", std::vector<int64_t>{1})});
  const std::string inside = to.Node("Max", {last, to.Constant("zero", std::vector<int64_t>{0})});
  return to.Node("Unsqueeze", {inside, to.Constant("time", {1})});
}

void TranslateFinalState(OnnxLayer& to) {
  const int64_t width = to.shape(0)[2];
  const std::vector<OnnxAttribute> by_sentence = {{"batch_dims", int64_t{1}}};
  if (!to.As<FinalState>().bidirectional()) {
    return to.Result("GatherND", {to.input(0), LastWord(to)}, by_sentence);
  }
  const std::string forward =
      to.Node("GatherND", {Columns(to, 0, width / 2), LastWord(to)}, by_sentence);
  // Take the first word's states, then remove the axis of length one.
  const std::string first =
      to.Node("Slice", {Columns(to, width / 2, width), to.Constant("zero", std::vector<int64_t>{0}),
                        to.Constant("one", std::vector<int64_t>{1}), to.Constant("time", {1})});
  const std::string backward = to.Node("Squeeze", {first, to.Constant("time", {1})});
  to.Result("Concat", {forward, backward}, {{"axis", int64_t{1}}});
}

DTRAIN_ONNX("final_state", TranslateFinalState);

}  // namespace
}  // namespace dtrain
