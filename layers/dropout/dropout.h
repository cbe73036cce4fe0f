// Inverted dropout.  In training y = x / (1 - ratio) with probability 1 - ratio, else 0.  In evaluation y = x.
// (PyTorch Dropout(p), Caffe Dropout.)
//
// Element i of the sample at position p of the global batch is dropped when
//   Random(seed, Purpose::kDropout, layer index, step * 2^20 + p).Bits(i) < ratio * 2^32,
// so the mask does not depend on the number of workers or threads, and the backward pass draws it again instead of
// storing it.
#pragma once

#include <cstdint>

#include "framework/core/random.h"
#include "framework/nn/layer.h"

namespace dtrain {

class Dropout : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override { return {inputs[0]}; }
  Cost CostOf(std::span<const Shape> inputs) const override;

  double ratio() const { return ratio_; }
  uint32_t threshold() const;  // an element is dropped if its word is below this

 private:
  double ratio_ = 0;
};

// Returns the random stream of one sample's mask.
constexpr Random DropoutRandom(uint64_t seed, uint64_t layer_index, uint64_t step,
                               int64_t position) {
  return Random(seed, Purpose::kDropout, layer_index,
                (step << 20) + static_cast<uint64_t>(position));
}

}  // namespace dtrain
