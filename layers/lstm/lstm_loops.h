// The elementwise half of an LSTM, for one sample and one step; compiled once per instruction set
// (lstm_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Floats kept of a step: a row of i, f, g, o, c.
inline constexpr int64_t kLstmRow = 5;

// row [5 H]: gates from x on entry; i, f, g, o, c on return.  from_state [4 H]: gates from h0.
DTRAIN_ISA_DECLARE(void, LstmForward,
                   (float* row, const float* from_state, const float* cell_before, int64_t hidden,
                    float* state))

// row: i, f, g, o become the gradients by what they are functions of.  dstate: the gradient by h on
// entry, 0 on return, since all of h0's passes W_h.  dcell: the gradient by c from the step behind;
// by the cell before on return.
DTRAIN_ISA_DECLARE(void, LstmBackward,
                   (float* row, const float* cell_before, int64_t hidden, float* dstate,
                    float* dcell))

}  // namespace dtrain
