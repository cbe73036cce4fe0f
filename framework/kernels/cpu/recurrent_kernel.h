// The kernel of the recurrent layers on the CPU: everything but the cell itself, which the layer's
// folder brings (RecurrentCell).
//
// Forward: the input half of all steps is one product, the state half one product a step, with
// weights packed once (kernels/cpu/packed_gemm.h).  Threads share out the samples and never wait
// for each other, and a sample's bits do not depend on its batch.  Backward: step by step what the
// state carries, then the gradients of the weights as one product over all steps.
#pragma once

#include <memory>
#include <vector>

#include "framework/nn/kernel.h"
#include "framework/nn/recurrent_layer.h"

namespace dtrain {

// Elementwise part of one step of one sample.  A row is what a step keeps for backward: first the
// gates, which hold W_i x + b_i when Forward is called.
struct CellStep {
  float* row;
  const float* row_before;    // of the step before; zeros at the start
  const float* from_state;    // [G H]: W_h h0 + b_h
  const float* state_before;  // [H]: h0
  int64_t hidden;
};

class RecurrentCell {
 public:
  virtual ~RecurrentCell() = default;

  virtual int64_t row_width(int64_t hidden) const = 0;  // floats of a row
  // Columns [first, first + H * gates) of a row that backward filled are the gradients by gates
  // [gate, gate + gates) of W_h h0 + b_h; those by W_i x + b_i lie at the beginning of the row.
  struct StatePart {
    int64_t first, gate, gates;
  };
  virtual std::vector<StatePart> StateParts(int64_t hidden) const = 0;

  virtual void Forward(Isa isa, const CellStep& step, float* state) const = 0;
  // dstate [H]: gradient by h; on return the part of the gradient by h0 that does not pass W_h.
  // dcarry [H]: gradient by what a row hands on beside the state (an LSTM's cell), by c on entry,
  // by the one before on return.  The row's gates become their gradients.
  virtual void Backward(Isa isa, const CellStep& step, float* dstate, float* dcarry) const = 0;
};

// For an offer of OfferPlain.
std::unique_ptr<Kernel> MakeRecurrent(const KernelRequest& request,
                                      std::unique_ptr<RecurrentCell> cell);

}  // namespace dtrain
