// Gives the last state of a recurrent layer's output, for each sentence (h_n of PyTorch's GRU and LSTM).
//   x [N, T, D H]; tokens [N, T] int32
//   y [N, D H]: the state at the sentence's last token; with `bidirectional: true` (D = 2) the second half is the
//               reverse direction's state at the first token, where it ends
// InferShapes throws ShapeError if x and tokens do not fit each other.
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
