// One step of a recurrent layer on the GPU, for all samples at once: the elementwise work between its matrix products.
//
// A cell is a struct of numbers and two functions of one element of the state:
//
//   struct Cell {
//     static constexpr int kGates, kRow;   // number of gates; floats per state element kept for backward
//     static constexpr int kCarry;         // index of the kept float that the next step reads (an LSTM's cell), or -1
//     static constexpr int kSameGates;     // number of gates, from the first, of which the gradients by W_i x + b_i
//                                          // and by W_h h0 + b_h are equal
//
//     // Returns the state, from each gate's x = W_i x + b_i and h = W_h h0 + b_h; fills `row`.
//     static DT_DEVICE float Forward(const float* x, const float* h, const CellPast& past,
//                                    float* row);
//     // state: on entry the gradient by the state, on return the part of the gradient by h0 that
//     // does not pass through W_h.  carry: on entry the gradient by row[kCarry], on return by the
//     // previous step's.  Writes the gradients by the gates to dx, and to dh unless all are the same.
//     static DT_DEVICE void Backward(const float* row, const CellPast& past, float& state,
//                                    float& carry, float* dx, float* dh);
//   };
#pragma once

#include <cmath>

#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/loops.h"

namespace dtrain {

// One element of the previous step's state and carry; both are 0 at the first step.
struct CellPast {
  float state;
  float carry;
};

// Refers to the rows of one step, one per sample.  Each pointer is to the first sample; the next samples follow at the
// distance given by the stride.
struct CellStep {
  int64_t samples = 0;
  int64_t hidden = 0;  // H
  // [kRow H], kept for backward.  When Forward begins, the first kGates H are W_i x; Backward overwrites them with
  // their gradients.
  float* row = nullptr;
  const float* row_before = nullptr;  // row of the previous step; null at the first step
  int64_t row_stride = 0;
  const float* state_before = nullptr;  // [H]; null: zeros
  int64_t before_stride = 0;
  float* state = nullptr;  // [H]
  int64_t state_stride = 0;
  RoundedCopy state_copy;  // its rows are state_stride apart as well
  // Read by Forward only: W_h h0 [samples, kGates H], dense, or null if h0 is 0; and the biases [kGates H].
  const float* from_state = nullptr;
  const float* bias_in = nullptr;
  const float* bias_state = nullptr;
  // Samples of length <= t have ended: their rows, states and gradients are 0.  Null if no sample has ended.
  const int32_t* lengths = nullptr;
  int64_t t = 0;
};

// Repeats `first`, an access to the first sample's row, for all samples, whose rows are `stride` floats apart.
inline Access OfSamples(const CellStep& s, int64_t stride, const Access& first) {
  return first.Repeated(s.samples, static_cast<size_t>(stride) * sizeof(float));
}

// Says that a kernel writes the first `count` numbers of each sample's row of a copy, whose rows are `stride` numbers apart.
inline Access WritesCopies(const CellStep& s, int64_t stride, const RoundedCopy& copy,
                           int64_t count) {
  return Writes(copy.data, count)
      .Repeated(s.samples, static_cast<size_t>(stride) * sizeof(uint16_t));
}

// Holds the additional arguments of the backward pass.
struct CellGradients {
  const float* dy = nullptr;  // [H], dy_stride apart: gradient by this step's output
  int64_t dy_stride = 0;
  float* dstate = nullptr;  // [samples, H], dense: in from the following step, out to the previous
  float* dcarry = nullptr;  // likewise; null if the cell has no carry
  // [kGates H], from_state_stride apart: receives the gradients by W_h h0 + b_h; null if all are the same.
  float* from_state = nullptr;
  int64_t from_state_stride = 0;
  // [H], before_stride apart: receives h0, for dW_h.  It is null if there is a copy, as products alone read it.
  float* before = nullptr;
  int64_t before_stride = 0;
  // Copies of the gradients in `row`, of those in from_state, and of h0; each has the stride of its original.
  RoundedCopy row_copy, from_state_copy, before_copy;
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

// The access reads what PastOf reads of the previous row.
template <class Cell>
Access ReadsCarry(const CellStep& s) {
  if (Cell::kCarry < 0 || s.row_before == nullptr) return {};
  return OfSamples(s, s.row_stride, Reads(s.row_before + Cell::kCarry * s.hidden, s.hidden));
}

// Computes element j of sample n.
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
  s.state_copy.Store(n * s.state_stride + j, state);
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
    g.row_copy.Store(n * s.row_stride + k * H + j, dx[k]);
    if constexpr (Cell::kSameGates < Cell::kGates) {
      g.from_state[n * g.from_state_stride + k * H + j] = dh[k];
      g.from_state_copy.Store(n * g.from_state_stride + k * H + j, dh[k]);
    }
  }
  g.dstate[n * H + j] = dstate;
  g.before_copy.Store(n * g.before_stride + j, past.state);
  if (g.before != nullptr) g.before[n * g.before_stride + j] = past.state;
}

template <class Cell>
void ForwardCells(CudaQueue& queue, const CellStep& step) {
  const int64_t H = step.hidden, gates = Cell::kGates * H;
  ForEach(
      queue,
      {"forward cells",
       {OfSamples(step, step.row_stride, Reads(step.row, gates)),
        OfSamples(step, step.row_stride, Writes(step.row, Cell::kRow * H)), ReadsCarry<Cell>(step),
        OfSamples(step, step.before_stride, Reads(step.state_before, H)),
        OfSamples(step, step.state_stride, Writes(step.state, H)),
        WritesCopies(step, step.state_stride, step.state_copy, H),
        Reads(step.from_state, step.samples * gates), Reads(step.bias_in, gates),
        Reads(step.bias_state, gates), Reads(step.lengths, step.samples)}},
      step.samples * H,
      [=] DT_DEVICE(int64_t i) { ForwardCell<Cell>(step, i / step.hidden, i % step.hidden); });
}

template <class Cell>
void BackwardCells(CudaQueue& queue, const CellStep& step, const CellGradients& gradients) {
  const int64_t H = step.hidden, gates = Cell::kGates * H, states = step.samples * H;
  const CellGradients& g = gradients;
  ForEach(
      queue,
      {"backward cells",
       {OfSamples(step, step.row_stride, Reads(step.row, Cell::kRow * H)),
        OfSamples(step, step.row_stride, Writes(step.row, gates)), ReadsCarry<Cell>(step),
        OfSamples(step, step.before_stride, Reads(step.state_before, H)),
        OfSamples(step, g.dy_stride, Reads(g.dy, H)), Updates(g.dstate, states),
        Updates(Cell::kCarry >= 0 ? g.dcarry : nullptr, states),
        OfSamples(step, g.from_state_stride,
                  Writes(Cell::kSameGates == Cell::kGates ? nullptr : g.from_state, gates)),
        WritesCopies(step, step.row_stride, g.row_copy, gates),
        WritesCopies(step, g.from_state_stride, g.from_state_copy, gates),
        WritesCopies(step, g.before_stride, g.before_copy, H),
        OfSamples(step, g.before_stride, Writes(g.before, H)), Reads(step.lengths, step.samples)}},
      states, [=] DT_DEVICE(int64_t i) {
        BackwardCell<Cell>(step, gradients, i / step.hidden, i % step.hidden);
      });
}

inline DT_DEVICE float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Implements the GRU's cell, shared by the layers gru and attention_decoder.  The gates are r, z, n (equations in
// kernels/cpu/loops.h); a row keeps r, z, n and W_hn h0 + b_hn.
struct GruCell {
  static constexpr int kGates = 3, kRow = 4, kCarry = -1;
  static constexpr int kSameGates = 2;  // r and z

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
