// One step of a recurrent layer on the GPU: what lies between its matrix products, for all samples
// at once.
//
// A cell is a struct of numbers and two functions of one element of the state:
//
//   struct Cell {
//     static constexpr int kGates, kRow;   // gates; numbers of an element that are kept for backward
//     static constexpr int kCarry;         // which of these the next step reads (an LSTM's cell); -1
//     static constexpr bool kSameGradients;   // by W_i x + b_i and by W_h h0 + b_h
//
//     // From x = W_i x + b_i and h = W_h h0 + b_h of each gate to the state; fills `row`.
//     static DT_DEVICE float Forward(const float* x, const float* h, const CellPast& past,
//                                    float* row);
//     // state: the gradient by the state on entry, on return that part of the gradient by h0 that
//     // does not pass W_h.  carry: by row[kCarry], on return by the one before.  dx, and dh unless
//     // kSameGradients: by the gates.
//     static DT_DEVICE void Backward(const float* row, const CellPast& past, float& state,
//                                    float& carry, float* dx, float* dh);
//   };
#pragma once

#include <cmath>

#include "framework/kernels/cuda/loops.h"

namespace dtrain {

// What an element of a state has of the step before; 0 at the start.
struct CellPast {
  float state;
  float carry;
};

// The rows of one step, one a sample; those of a member lie its stride apart.
struct CellStep {
  int64_t samples = 0;
  int64_t hidden = 0;  // H
  // [kRow H]: kept for backward.  On forward's entry the first kGates H are W_i x; backward makes
  // their gradients of them.
  float* row = nullptr;
  const float* row_before = nullptr;  // of the step before; null at the start
  int64_t row_stride = 0;
  const float* state_before = nullptr;  // [H]; null: zeros
  int64_t before_stride = 0;
  float* state = nullptr;  // [H]
  int64_t state_stride = 0;
  // Forward: W_h h0 [samples, kGates H], dense, null where h0 is 0; and the biases [kGates H].
  const float* from_state = nullptr;
  const float* bias_in = nullptr;
  const float* bias_state = nullptr;
  // Samples of length <= t have ended: their rows and states are 0, and so are gradients.  Null:
  // none has.
  const int32_t* lengths = nullptr;
  int64_t t = 0;
};

// What backward has besides.
struct CellGradients {
  const float* dy = nullptr;  // [H], dy_stride apart: the gradient by this step's output
  int64_t dy_stride = 0;
  float* dstate = nullptr;  // [samples, H], dense: from the step behind; to the step before
  float* dcarry = nullptr;  // likewise; null where the cell has no carry
  // [kGates H], from_state_stride apart: gradients by W_h h0 + b_h; null where kSameGradients.
  float* from_state = nullptr;
  int64_t from_state_stride = 0;
  float* before = nullptr;  // [H], before_stride apart: gets the state before, for dW_h
  int64_t before_stride = 0;
};

template <class Cell>
DT_DEVICE CellPast PastOf(const CellStep& s, int64_t n, int64_t j) {
  CellPast past = {0, 0};
  if (s.state_before != nullptr) past.state = s.state_before[n * s.before_stride + j];
  if (Cell::kCarry >= 0 && s.row_before != nullptr) {
    past.carry = s.row_before[n * s.row_stride + Cell::kCarry * s.hidden + j];
  }
  return past;
}

// Element j of sample n.
template <class Cell>
DT_DEVICE void ForwardCell(const CellStep& s, int64_t n, int64_t j) {
  const int64_t H = s.hidden;
  float* const row = s.row + n * s.row_stride + j;
  float kept[Cell::kRow] = {};
  float state = 0;
  if (s.lengths == nullptr || s.t < s.lengths[n]) {
    float x[Cell::kGates], h[Cell::kGates];
    for (int g = 0; g < Cell::kGates; ++g) {
      x[g] = row[g * H] + s.bias_in[g * H + j];
      h[g] = s.bias_state[g * H + j];
      if (s.from_state != nullptr) h[g] += s.from_state[(n * Cell::kGates + g) * H + j];
    }
    state = Cell::Forward(x, h, PastOf<Cell>(s, n, j), kept);
  }
  for (int k = 0; k < Cell::kRow; ++k) row[k * H] = kept[k];
  s.state[n * s.state_stride + j] = state;
}

template <class Cell>
DT_DEVICE void BackwardCell(const CellStep& s, const CellGradients& g, int64_t n, int64_t j) {
  const int64_t H = s.hidden;
  const CellPast past = PastOf<Cell>(s, n, j);
  float* const row = s.row + n * s.row_stride + j;
  float dx[Cell::kGates] = {}, dh[Cell::kGates] = {};
  float dstate = 0;
  if (s.lengths == nullptr || s.t < s.lengths[n]) {
    float kept[Cell::kRow];
    for (int k = 0; k < Cell::kRow; ++k) kept[k] = row[k * H];
    dstate = g.dstate[n * H + j] + g.dy[n * g.dy_stride + j];
    float dcarry = Cell::kCarry >= 0 ? g.dcarry[n * H + j] : 0;
    Cell::Backward(kept, past, dstate, dcarry, dx, dh);
    if (Cell::kCarry >= 0) g.dcarry[n * H + j] = dcarry;
  }
  for (int k = 0; k < Cell::kGates; ++k) {
    row[k * H] = dx[k];
    if (!Cell::kSameGradients) g.from_state[n * g.from_state_stride + k * H + j] = dh[k];
  }
  g.dstate[n * H + j] = dstate;
  g.before[n * g.before_stride + j] = past.state;
}

template <class Cell>
void ForwardCells(CudaQueue& queue, const CellStep& step) {
  ForEach(queue, step.samples * step.hidden,
          [=] DT_DEVICE(int64_t i) { ForwardCell<Cell>(step, i / step.hidden, i % step.hidden); });
}

template <class Cell>
void BackwardCells(CudaQueue& queue, const CellStep& step, const CellGradients& gradients) {
  ForEach(queue, step.samples * step.hidden, [=] DT_DEVICE(int64_t i) {
    BackwardCell<Cell>(step, gradients, i / step.hidden, i % step.hidden);
  });
}

inline DT_DEVICE float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// The GRU's, which the layer gru and the attention's decoder share; gates r, z, n (see layers/gru).
// Kept: r, z, n and W_hn h0 + b_hn.
struct GruCell {
  static constexpr int kGates = 3, kRow = 4, kCarry = -1;
  static constexpr bool kSameGradients = false;

  static DT_DEVICE float Forward(const float* x, const float* h, const CellPast& past, float* row) {
    const float r = Sigmoid(x[0] + h[0]), z = Sigmoid(x[1] + h[1]);
    const float n = tanhf(x[2] + r * h[2]);
    row[0] = r, row[1] = z, row[2] = n, row[3] = h[2];
    return n + z * (past.state - n);
  }

  static DT_DEVICE void Backward(const float* row, const CellPast& past, float& state, float&,
                                 float* dx, float* dh) {
    const float r = row[0], z = row[1], n = row[2];
    dx[2] = state * (1 - z) * (1 - n * n);
    dx[1] = dh[1] = state * (past.state - n) * z * (1 - z);
    dx[0] = dh[0] = dx[2] * row[3] * r * (1 - r);
    dh[2] = dx[2] * r;
    state *= z;
  }
};

}  // namespace dtrain
