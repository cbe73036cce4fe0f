// The elementwise part of an LSTM for one sample and one step is compiled once per instruction set (lstm_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Floats per state element that are kept of a step: a row of i, f, g, o, c.
inline constexpr int64_t kLstmRow = 5;

// row [5 H] holds W_i x + b_i on entry, and i, f, g, o, c on return. from_state [4 H] holds W_h h0 + b_h.
DTRAIN_ISA_DECLARE(void, LstmForward,
                   (float* row, const float* from_state, const float* cell_before, int64_t hidden,
                    float* state))

// Overwrites i, f, g, o in `row` with the gradients by the gates' arguments. dstate is the gradient by h on entry, and
// 0 on return, since all of the gradient by h0 passes through W_h. dcell is the gradient by c from the following step
// on entry, and the gradient by the previous step's cell on return.
DTRAIN_ISA_DECLARE(void, LstmBackward,
                   (float* row, const float* cell_before, int64_t hidden, float* dstate,
                    float* dcell))

}  // namespace dtrain
