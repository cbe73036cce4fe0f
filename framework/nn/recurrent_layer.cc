#include "framework/nn/recurrent_layer.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"
#include "framework/nn/tokens.h"

namespace dtrain {

void RecurrentLayer::Configure(config::Reader& reader) {
  hidden_ = reader.Int("hidden", 1)
                .Required()
                .Min(1)
                .Max(kLargestExtent)
                .Help("size of the hidden state");
  layers_ = reader.Int("layers", 1).Min(1).Max(1000).Help("number of stacked layers");
  bidirectional_ = reader.Bool("bidirectional", false)
                       .Help("also run from the end of the sequence to its begin");
  dropout_ = reader.Number("dropout", 0)
                 .Min(0)
                 .Below(1)
                 .Help("share of the elements set to 0 between two layers");
  pad_ = reader.Int("pad", kPadToken).Min(0).Help("padding token after the end of a sentence");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "how the weights start"), {"xavier", 0});
  bias_init_ = ReadInitSpec(reader.Section("bias_init", "how the biases start"), {"constant", 0});
}

std::vector<Shape> RecurrentLayer::InferShapes(std::span<const Shape> inputs) {
  const Shape &x = inputs[0], &tokens = inputs[1];
  if (x.rank() != 3 || tokens.rank() != 2 || x[0] != tokens[0] || x[1] != tokens[1]) {
    throw ShapeError("inputs of shapes " + x.ToString() + " and " + tokens.ToString() +
                         " do not fit; it takes [N, T, I] and the tokens [N, T]",
                     "does an embedding of the same tokens come before it?");
  }
  features_ = x[2];
  return {{x[0], x[1], directions() * hidden_}};
}

std::vector<ParamSpec> RecurrentLayer::Params() const {
  std::vector<ParamSpec> params;
  const int64_t rows = gates_ * hidden_;
  for (int64_t k = 0; k < layers_; ++k) {
    for (int64_t direction = 0; direction < directions(); ++direction) {
      const std::string suffix = "_l" + std::to_string(k) + (direction == 0 ? "" : "_reverse");
      const int64_t inputs = InputsOf(k, features_);
      params.push_back({"weight_ih" + suffix, {rows, inputs}, weight_init_, inputs, hidden_});
      params.push_back({"weight_hh" + suffix, {rows, hidden_}, weight_init_, hidden_, hidden_});
      params.push_back({"bias_ih" + suffix, {rows}, bias_init_, inputs, hidden_});
      params.push_back({"bias_hh" + suffix, {rows}, bias_init_, hidden_, hidden_});
    }
  }
  return params;
}

Cost RecurrentLayer::CostOf(std::span<const Shape> inputs) const {
  const auto rows = static_cast<double>(inputs[0][0] * inputs[0][1] * directions());
  double forward = 0;
  for (int64_t k = 0; k < layers_; ++k) {
    const int64_t inner = InputsOf(k, inputs[0][2]) + hidden_;
    forward +=
        rows * static_cast<double>(gates_ * hidden_) * (2.0 * static_cast<double>(inner) + 20);
  }
  return {forward, 2 * forward};
}

}  // namespace dtrain
