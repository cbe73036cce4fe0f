// The base class of the recurrent layers (gru, lstm): keys, shapes, parameters, cost.  They match PyTorch's
// torch.nn.GRU and torch.nn.LSTM with batch_first, whose input was packed by pack_padded_sequence.
//
//   x       [N, T, I]
//   tokens  [N, T] int32, whose padding marks the end of a sentence: there the state does not change
//           and the output is 0
//   y       [N, T, D H], the states of the last layer; D = 2 when bidirectional: [forward, backward]
//
// Parameters, with G gates in PyTorch's order, for layer k and, with the suffix _reverse, for its
// backward direction:
//
//   weight_ih_l<k> [G H, I or D H]     bias_ih_l<k> [G H]
//   weight_hh_l<k> [G H, H]            bias_hh_l<k> [G H]
//
// `dropout` acts on the output of every layer but the last, in training.  The states start at 0.  InferShapes throws
// ShapeError when x and tokens do not fit.
#pragma once

#include "framework/core/random.h"
#include "framework/nn/layer.h"

namespace dtrain {

class RecurrentLayer : public Layer {
 public:
  explicit RecurrentLayer(int gates) : gates_(gates) {}

  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  int input_count() const override { return 2; }
  InputKind input_kind(int input) const override {
    return input == 1 ? InputKind::kClasses : InputKind::kNumbers;
  }
  bool InputHasGradient(int input) const override { return input == 0; }

  int gates() const { return gates_; }
  int64_t hidden() const { return hidden_; }
  int64_t layers() const { return layers_; }
  int64_t directions() const { return bidirectional_ ? 2 : 1; }
  double dropout() const { return dropout_; }
  int64_t pad() const { return pad_; }
  // Returns the features that layer k reads if x has `features`.
  int64_t InputsOf(int64_t k, int64_t features) const {
    return k == 0 ? features : directions() * hidden_;
  }

  // The parameters of one direction of one layer have this order within Params().
  enum Part { kWeightIn, kWeightState, kBiasIn, kBiasState, kParts };
  size_t ParamOf(int64_t k, int64_t direction, Part part) const {
    return static_cast<size_t>((k * directions() + direction) * kParts + part);
  }

 private:
  const int gates_;
  int64_t features_ = 0;
  int64_t hidden_ = 0;
  int64_t layers_ = 1;
  bool bidirectional_ = false;
  double dropout_ = 0;
  int64_t pad_ = 0;
  InitSpec weight_init_;
  InitSpec bias_init_;
};

// Returns the dropout generator of layer k's output for the sample at `position` of the global batch: element i of its
// [T, D H] is dropped if Bits(i) < dropout * 2^32.  The inner layers use stream numbers far above any layer's index.
constexpr Random RecurrentDropout(uint64_t seed, uint64_t layer_index, int64_t k, uint64_t step,
                                  int64_t position) {
  return Random(seed, Purpose::kDropout, layer_index + (static_cast<uint64_t>(k + 1) << 16),
                (step << 20) + static_cast<uint64_t>(position));
}

}  // namespace dtrain
