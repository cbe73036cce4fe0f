// Computes the gradient of an embedding on the GPU, for layers that look up vectors by token.
//
// Tokens are sorted together with their positions, so that one thread adds up each element of the gradient in the
// order of the tokens.  No atomics are used; the result is bitwise the same in every run, and equal to the CPU's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/device/cuda/queue.h"
#include "framework/kernels/cuda/matrix_product.h"
#include "framework/nn/kernel.h"

namespace dtrain {

class EmbeddingGradientCuda {
 public:
  // Prepares the gradient for `tokens` tokens; each vector of the vocabulary has `size` floats.
  EmbeddingGradientCuda(int64_t tokens, int64_t vocabulary, int64_t size);

  size_t scratch_bytes() const { return room_.bytes() + sort_bytes_; }

  // Row w of dw [vocabulary, size] = (or += if `accumulate`) the sum of the rows of dy [tokens, size] whose token is w.
  // Rows whose token is outside [0, vocabulary) are left out.  `scratch` must have scratch_bytes().
  void Write(CudaQueue& queue, const int32_t* tokens, const DeviceMatrix& dy, bool accumulate,
             float* dw, void* scratch) const;

 private:
  const int64_t tokens_, vocabulary_, size_;
  FloatRoom room_;  // offsets in scratch, in 4-byte words; CUB's scratch follows
  const int64_t keys_, places_, sorted_keys_, sorted_places_;
  const int bits_;  // significant bits of a key
  const size_t sort_bytes_;
};

}  // namespace dtrain
