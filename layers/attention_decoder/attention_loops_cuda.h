// Computes additive attention and the choice of words on the GPU, for all rows of a step.  A row is a sentence, or one
// hypothesis of a beam search about a sentence.  A row's result does not depend on S or on the other rows.
#pragma once

#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/matrix_product.h"
#include "framework/kernels/cuda/softmax_sum.h"

namespace dtrain {

struct AttentionRows {
  const float* keys;        // [sentences, S, A]: attn's encoder half applied to h_j, with bias
  const float* values;      // [sentences, S, C]: h_j
  const float* v;           // [A]
  const int32_t* lengths;   // [sentences]: positions before the padding
  const int32_t* sentence;  // sentence of each row; null: row n is sentence n
  int64_t sentences;
  DeviceMatrix query;    // [rows, A]: attn's state half applied to s_{t-1}
  DeviceMatrix weights;  // [rows, S]

  DT_DEVICE int64_t SentenceOf(int64_t row) const {
    return sentence == nullptr ? row : sentence[row];
  }
  DT_DEVICE int64_t LengthOf(int64_t row) const { return lengths[SentenceOf(row)]; }
  // Returns the row of keys and values for position j of the source sentence of `row`.
  DT_DEVICE int64_t PlaceOf(int64_t row, int64_t j) const {
    return SentenceOf(row) * weights.columns + j;
  }
};

// weights = softmax of v . tanh(keys + query), 0 at padding;  context [rows, C] = weights . values, and its copy if it has
// one.  `sums` is scratch memory, one element per row.
void Attend(CudaQueue& queue, const AttentionRows& rows, SoftmaxSum* sums,
            const DeviceMatrix& context);

// Computes the gradients from dcontext, the gradient with respect to the context.  rows.sentence must be null.  Adds to
// dkeys [rows, S, A] and dv [rows, A]; overwrites dquery [rows, A] and its copy.  `room` [rows, S] is scratch memory.
void AttendBackward(CudaQueue& queue, const AttentionRows& rows, const DeviceMatrix& dcontext,
                    float* room, float* dkeys, const DeviceMatrix& dquery, float* dv);

// tokens[row * apart] = the index of the row's largest score, the first of equal ones; 0 if all are NaN.  They stay as
// they are if *forced, which may be null, is not 0.
void ChooseLargest(CudaQueue& queue, const DeviceMatrix& scores, const int32_t* forced,
                   int32_t* tokens, int64_t apart);

// Subtracts log(sum of exp(x)) from each row of x.  `sums` is scratch memory, one element per row.
void LogSoftmax(CudaQueue& queue, const DeviceMatrix& x, SoftmaxSum* sums);

}  // namespace dtrain
