// The last state of a recurrent layer's output, for each sentence (h_n of PyTorch's GRU and LSTM).
//   x [N, T, D H]; tokens [N, T] int32
//   y [N, D H]: of a forward pass the state at the sentence's last token; with `bidirectional: true`
//               the second half comes from the backward pass, which ends at the first token
// InferShapes throws ShapeError when x and tokens do not fit.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class FinalState : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  int input_count() const override { return 2; }
  InputKind input_kind(int input) const override {
    return input == 1 ? InputKind::kClasses : InputKind::kNumbers;
  }
  bool InputHasGradient(int input) const override { return input == 0; }

  bool bidirectional() const { return bidirectional_; }
  int64_t pad() const { return pad_; }

 private:
  bool bidirectional_ = false;
  int64_t pad_ = 0;
};

}  // namespace dtrain
