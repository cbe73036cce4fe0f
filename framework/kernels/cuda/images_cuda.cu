#include "framework/kernels/cuda/images.h"

#include <cuda_bf16.h>

#include "framework/kernels/cuda/column_sums.h"

namespace dtrain {

// Each thread finds the element of `from` that belongs at position i of `to`.
void ReorderImages(CudaQueue& queue, const Tensor& from, const Tensor& to) {
  const float* const x = from.f32();
  float* const y = to.f32();
  const int64_t channels = from.shape[1], pixels = from.shape.CountFrom(2);
  const bool to_last = to.format == Format::kChannelsLast;
  const int64_t count = from.shape.count();
  ForEach(queue, {"reorder images", {Reads(x, count), Writes(y, count)}}, count,
          [=] DT_DEVICE(int64_t i) {
            const int64_t inner = to_last ? channels : pixels, outer = to_last ? pixels : channels;
            const int64_t image = i / (inner * outer), at = i % (inner * outer);
            y[i] = x[image * inner * outer + at % inner * outer + at / inner];
          });
}

void RoundToBf16(CudaQueue& queue, int64_t count, const float* from, void* to) {
  auto* const rounded = static_cast<__nv_bfloat16*>(to);
  ForEach(queue, {"round to bf16", {Reads(from, count), Writes(rounded, count)}}, count,
          [=] DT_DEVICE(int64_t i) { rounded[i] = __float2bfloat16_rn(from[i]); });
}

void WidenBf16(CudaQueue& queue, int64_t count, const void* from, float* to) {
  const auto* const rounded = static_cast<const __nv_bfloat16*>(from);
  ForEach(queue, {"widen bf16", {Reads(rounded, count), Writes(to, count)}}, count,
          [=] DT_DEVICE(int64_t i) { to[i] = __bfloat162float(rounded[i]); });
}

void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const float* x, double* partial,
                 bool accumulate, float* sum) {
  const int64_t columns = sums.columns();
  SumColumns(
      queue, {"sum over rows", {Reads(x, sums.rows() * columns)}},
      {Stores(sum, columns, accumulate)}, sums, partial,
      [=] DT_DEVICE(int64_t row, int64_t c) -> double { return x[row * columns + c]; },
      [=] DT_DEVICE(int64_t c, double all) {
        const auto added = static_cast<float>(all);
        sum[c] = accumulate ? sum[c] + added : added;
      });
}

}  // namespace dtrain
