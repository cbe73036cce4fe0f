// Precision: the numbers that large products are computed with (`precision` of a run).
//
// It is about products only: parameters, activations, gradients, statistics and the solver are fp32
// everywhere, so checkpoints and what travels between ranks do not depend on it.
#pragma once

namespace dtrain {

enum class Precision {
  kFp32,
  kBf16  // factors are rounded to bf16 (8 bits of fraction, to nearest even), sums are fp32
};

}  // namespace dtrain
