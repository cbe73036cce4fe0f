// The kernel of the recurrent layers on the GPU: everything but the cell itself (cells.h), which the
// layer's folder brings.
//
// Forward: the input half of all steps is one product, the state half one product a step, the rest
// of a step one pass.  Backward: likewise what the state carries, then the gradients of the weights
// as one product over all steps.
//
// Not cuDNN's recurrent layers: their weights are one packed block, which would be copied at every
// step, and no test without a GPU could follow them.  They stay an option for speed.
#pragma once

#include <memory>

#include "framework/kernels/cuda/cells.h"
#include "framework/nn/kernel.h"
#include "framework/nn/recurrent_layer.h"

namespace dtrain {

// A cell for a kernel that is no template.
struct RecurrentCellCuda {
  int64_t gates, row;
  bool carries, same_gradients;
  void (*forward)(CudaQueue&, const CellStep&);
  void (*backward)(CudaQueue&, const CellStep&, const CellGradients&);
};

std::unique_ptr<Kernel> MakeRecurrentCuda(const KernelRequest& request,
                                          const RecurrentCellCuda& cell);

// For an offer of OfferPlain.
template <class Cell>
std::unique_ptr<Kernel> MakeRecurrentCuda(const KernelRequest& request) {
  return MakeRecurrentCuda(request,
                           {Cell::kGates, Cell::kRow, Cell::kCarry >= 0, Cell::kSameGradients,
                            &ForwardCells<Cell>, &BackwardCells<Cell>});
}

}  // namespace dtrain
