// The gradient of an embedding on the GPU: for layers that look vectors up.
//
// Tokens are sorted together with their places, so that each number of the gradient is added up by
// one thread, in the order of the tokens: no atomics, the same bits at every run, and those of the
// CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/device/cuda/queue.h"
#include "framework/kernels/cuda/matrix_product.h"
#include "framework/nn/kernel.h"

namespace dtrain {

class EmbeddingGradientCuda {
 public:
  // Of `tokens` tokens of a vocabulary whose vectors have `size` numbers.
  EmbeddingGradientCuda(int64_t tokens, int64_t vocabulary, int64_t size);

  size_t scratch_bytes() const { return room_.bytes() + sort_bytes_; }

  // Row w of dw [vocabulary, size] = (or +=, if `accumulate`) the sum of the rows of dy
  // [tokens, size] whose token is w.  Rows of what is no token are left out.
  void Write(CudaQueue& queue, const int32_t* tokens, const DeviceMatrix& dy, bool accumulate,
             float* dw, void* scratch) const;

 private:
  const int64_t tokens_, vocabulary_, size_;
  FloatRoom room_;  // of what lies in scratch, in words of four bytes; behind it the sort's
  const int64_t keys_, places_, sorted_keys_, sorted_places_;
  const int bits_;  // of a key
  const size_t sort_bytes_;
};

}  // namespace dtrain
