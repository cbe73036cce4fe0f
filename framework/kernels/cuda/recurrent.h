// Declares the GPU kernel of the recurrent layers, except for the cell itself (cells.h), which the layer's folder
// supplies.
//
// Forward computes the input half of all steps in one product; each step then takes one product for the state half and
// one elementwise pass.  Backward computes the gradients by the states in the same way, then the gradients of the
// weights in one product over all steps.
//
// cuDNN's recurrent layers are not used: their weights are one packed block, which would have to be copied at every
// step, and tests without a GPU could not run them.  They remain an option for speed.
#pragma once

#include <memory>

#include "framework/kernels/cuda/cells.h"
#include "framework/nn/kernel.h"
#include "framework/nn/recurrent_layer.h"

namespace dtrain {

// Holds a cell's properties and functions, so that the kernel need not be a template.
struct RecurrentCellCuda {
  int64_t gates, row, same_gates;
  bool carries;
  void (*forward)(CudaQueue&, const CellStep&);
  void (*backward)(CudaQueue&, const CellStep&, const CellGradients&);
};

std::unique_ptr<Kernel> MakeRecurrentCuda(const KernelRequest& request,
                                          const RecurrentCellCuda& cell);

// Register it with OfferPlain: all tensors must be row-major.
template <class Cell>
std::unique_ptr<Kernel> MakeRecurrentCuda(const KernelRequest& request) {
  return MakeRecurrentCuda(request, {Cell::kGates, Cell::kRow, Cell::kSameGates, Cell::kCarry >= 0,
                                     &ForwardCells<Cell>, &BackwardCells<Cell>});
}

}  // namespace dtrain
