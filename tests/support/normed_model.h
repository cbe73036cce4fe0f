// A small model with batch norm, for images of `digits`.
#pragma once

namespace dtrain {

inline constexpr char kNormedModel[] = R"(
name: small
layers:
  - {name: conv, type: convolution, outputs: 4, kernel: 5, stride: 3, bias: false}
  - {name: bn, type: batch_norm}
  - {name: relu, type: relu}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: accuracy, type: accuracy, input: [fc, label]}
)";

}  // namespace dtrain
