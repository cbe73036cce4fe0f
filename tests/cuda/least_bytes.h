// The least that a layer must read and write of a device's memory, to compare with what its kernels do.
//
// Two kernels share nothing on the chip, and a kernel keeps what it needs of a row, a window or a tile.  So an image, a
// sum over the batch and a step's state are written once, and read again by each product, and by each pass that needs
// a sum over all of it:
//   product        y = x W; dx = dy W; dW = x dy: each reads its two factors once
//   batch norm     its sums, then its result, forward and backward; the sum and ReLU behind it are in the same passes
//   recurrent      the products of a step need the state before it, so each step reads the weights again
//   loss           the largest score and the sum, then the gradient
//   all others     each input and output once
#pragma once

#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/solver/solver.h"

namespace dtrain {

// Returns the least of one call, 0 for a kernel that the program has inserted.  `precision` is the device's: in 16 bits
// products read weights that have 16.
double LeastBytes(const KernelTiming& call, Precision precision);

// Returns the least of an update of `weights` weights by SGD with momentum: three vectors are read, two written; of
// those that kernels read in 16 bits, a copy is written.  With a loss scale all gradients are looked at before the first
// is used.
double LeastBytesOfUpdate(int64_t weights, int64_t in_16_bits, bool loss_scale);

}  // namespace dtrain
