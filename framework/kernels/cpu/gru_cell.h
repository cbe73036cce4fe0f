// The elementwise half of a GRU (Cho et al. 2014, in the form of PyTorch's torch.nn.GRU), for one
// sample and one step; compiled once per instruction set (gru_cell_isa.cc).
//
//   r = sigmoid(xr + hr)    z = sigmoid(xz + hz)    n = tanh(xn + r * hn)    h = (1 - z) n + z h0
//
// x. = W_i. x + b_i. and h. = W_h. h0 + b_h. are matrix products made before.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Floats kept of a step: a row of r, z, n, hn; backward makes the gradients of xr = hr, xz = hz,
// xn, hn of it.
inline constexpr int64_t kGruRow = 4;

// row [4 H]: xr, xz, xn on entry; r, z, n, hn on return.  from_state [3 H]: hr, hz, hn.
// state may be state_before.
DTRAIN_ISA_DECLARE(void, GruForward,
                   (float* row, const float* from_state, const float* state_before, int64_t hidden,
                    float* state))

// row: r, z, n, hn on entry; gradients by xr (= by hr), xz (= by hz), xn, hn on return.  dstate:
// the gradient by h on entry, on return the part of the gradient by h0 that does not go through
// W_h.
DTRAIN_ISA_DECLARE(void, GruBackward,
                   (float* row, const float* state_before, int64_t hidden, float* dstate))

}  // namespace dtrain
