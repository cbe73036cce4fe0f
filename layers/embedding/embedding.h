// Gives a learned vector for each token (PyTorch Embedding, Caffe Embed).
//   y[n,t,:] = w[x[n,t],:]
//   x [N, ...] int32 tokens;  w [V, E];  y [N, ..., E]
// V is the key `vocabulary`, or, if not given, the number of classes of the input's tokens.  A token outside [0, V)
// throws DataError with its position in the global batch; on a GPU its vector becomes NaN instead.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Embedding : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  void SetInputClasses(std::span<const int64_t> classes) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  InputKind input_kind(int) const override { return InputKind::kClasses; }
  bool InputHasGradient(int) const override { return false; }

  int64_t vocabulary() const { return vocabulary_; }
  int64_t outputs() const { return outputs_; }

 private:
  int64_t outputs_ = 0;
  int64_t vocabulary_ = 0;
  InitSpec weight_init_;
};

}  // namespace dtrain
