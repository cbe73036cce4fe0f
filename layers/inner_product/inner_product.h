// Fully connected layer (PyTorch Linear, Caffe InnerProduct).
//   y[n,o] = sum_i x[n,i] w[o,i] + b[o]
//   x [N, ...]  axes from `axis` (1) on are flattened into I; those before it are kept
//   w [O, I]    row-major;  b [O], absent when `bias: false`;  y [N, ..., O]
// With `axis: 2` it is applied at every step of a sequence [N, T, I].
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class InnerProduct : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;

  int64_t outputs() const { return outputs_; }
  int64_t axis() const { return axis_; }
  int64_t inputs() const { return inputs_; }  // I, known after InferShapes
  bool has_bias() const { return has_bias_; }

 private:
  int64_t outputs_ = 0;
  int64_t axis_ = 1;
  int64_t inputs_ = 0;
  bool has_bias_ = true;
  InitSpec weight_init_;
  InitSpec bias_init_;
};

}  // namespace dtrain
