// Additive attention and the choice of words on the GPU, for all rows of a step.  A row is a
// sentence, or a hypothesis about one.  What a row gets does not depend on S or on the other rows.
#pragma once

#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/matrix_product.h"

namespace dtrain {

// Sum of exp(x - largest), of a row.
struct SoftmaxSum {
  float largest;
  double sum;
};

struct AttentionRows {
  const float* keys;        // [sentences, S, A]: attn's encoder half of h_j, bias included
  const float* values;      // [sentences, S, C]: h_j
  const float* v;           // [A]
  const int32_t* lengths;   // by sentence: places before the padding
  const int32_t* sentence;  // of each row; null: row n is about sentence n
  DeviceMatrix query;       // [rows, A]: attn's state half
  DeviceMatrix weights;     // [rows, S]

  DT_DEVICE int64_t SentenceOf(int64_t row) const {
    return sentence == nullptr ? row : sentence[row];
  }
  DT_DEVICE int64_t LengthOf(int64_t row) const { return lengths[SentenceOf(row)]; }
  // Place j of the source of a row: a row of keys and of values.
  DT_DEVICE int64_t PlaceOf(int64_t row, int64_t j) const {
    return SentenceOf(row) * weights.columns + j;
  }
};

// weights = softmax of v . tanh(keys + query), 0 on padding;  context [rows, C] = weights . values.
// `sums`: room, one a row.
void Attend(CudaQueue& queue, const AttentionRows& rows, SoftmaxSum* sums,
            const DeviceMatrix& context);

// From the gradient by the context, where row n is about sentence n.  Adds to dkeys [rows, S, A],
// writes dquery [rows, A], adds to dv [rows, A]; room: [rows, S].
void AttendBackward(CudaQueue& queue, const AttentionRows& rows, const DeviceMatrix& dcontext,
                    float* room, float* dkeys, const DeviceMatrix& dquery, float* dv);

// tokens[row * apart] = the first of the row's largest; 0 where all are NaN.
void ChooseLargest(CudaQueue& queue, const DeviceMatrix& scores, int32_t* tokens, int64_t apart);

// Each row: x -= log(sum of exp(x)).  `sums`: room, one a row.
void LogSoftmax(CudaQueue& queue, const DeviceMatrix& x, SoftmaxSum* sums);

}  // namespace dtrain
