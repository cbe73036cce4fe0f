// Declares the CPU kernel of the recurrent layers, except for the cell itself, which the layer's folder supplies
// (RecurrentCell).
//
// Forward computes the input half of all steps in one product, and the state half in one product per step, with
// weights packed once (kernels/cpu/packed_gemm.h).  Threads divide the samples and never wait for each other; a
// sample's result does not depend on its batch.  Backward computes the gradients by the states step by step, then the
// gradients of the weights in one product over all steps.
#pragma once

#include <memory>
#include <vector>

#include "framework/nn/kernel.h"
#include "framework/nn/recurrent_layer.h"

namespace dtrain {

// Describes the elementwise part of one step of one sample.  A row is the data that a step keeps for the backward pass.
// It begins with the gates, which hold W_i x + b_i when Forward is called.
struct CellStep {
  float* row;
  const float* row_before;    // row of the previous step; zeros at the first step
  const float* from_state;    // [G H]: W_h h0 + b_h
  const float* state_before;  // [H]: h0
  int64_t hidden;
};

class RecurrentCell {
 public:
  virtual ~RecurrentCell() = default;

  virtual int64_t row_width(int64_t hidden) const = 0;  // floats of a row
  // After Backward, columns [first, first + H * gates) of a row are the gradients by gates [gate, gate + gates) of
  // W_h h0 + b_h.  The gradients by W_i x + b_i are at the beginning of the row.
  struct StatePart {
    int64_t first, gate, gates;
  };
  virtual std::vector<StatePart> StateParts(int64_t hidden) const = 0;

  virtual void Forward(Isa isa, const CellStep& step, float* state) const = 0;
  // Computes the gradients of one step, and overwrites the row's gates with theirs.
  //   dstate [H]   on entry the gradient by h; on return the part of the gradient by h0 that does not pass through W_h
  //   dcarry [H]   on entry the gradient by the carry c (an LSTM's cell), on return the gradient by the previous step's
  //                carry; unused by cells without a carry
  virtual void Backward(Isa isa, const CellStep& step, float* dstate, float* dcarry) const = 0;
};

// Register it with OfferPlain: all tensors must be row-major.
std::unique_ptr<Kernel> MakeRecurrent(const KernelRequest& request,
                                      std::unique_ptr<RecurrentCell> cell);

}  // namespace dtrain
