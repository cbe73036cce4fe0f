#include "framework/kernels/cuda/rows.h"

#include <algorithm>
#include <cmath>

#include "framework/kernels/cuda/element_types.h"
#include "framework/nn/tokens.h"

namespace dtrain {
namespace {

template <class T>
void RoundRowsAs(CudaQueue& queue, int64_t count, const DeviceMatrices& matrices, int64_t stride,
                 T* rounded) {
  const DeviceMatrix from = matrices.first;
  const int64_t apart = matrices.apart, rows = from.rows, columns = from.columns;
  const int64_t all = count * rows;  // rows of all matrices
  const Access reads = Reads(from).Repeated(count, static_cast<size_t>(apart) * sizeof(float));
  const Access writes =
      Writes(rounded, columns).Repeated(all, static_cast<size_t>(stride) * sizeof(*rounded));
  ForEach(queue, {"round rows", {reads, writes}}, all * columns, [=] DT_DEVICE(int64_t i) {
    const int64_t row = i / columns, column = i % columns;
    const float* const matrix = from.data + row / rows * apart;
    rounded[row * stride + column] = static_cast<T>(matrix[row % rows * from.stride + column]);
  });
}

}  // namespace

void ZeroFloats(CudaQueue& queue, float* data, int64_t count) {
  queue.Zero(data, static_cast<size_t>(count) * sizeof(float));
}

void RoundRows(CudaQueue& queue, int64_t count, const DeviceMatrices& matrices, int64_t stride,
               DType type, void* to) {
  WithElementType(
      type, [&]<class T>() { RoundRowsAs(queue, count, matrices, stride, static_cast<T*>(to)); });
}

void FillRows(CudaQueue& queue, const float* values, const DeviceMatrix& to) {
  ForEach(queue, {"fill rows", {Reads(values, to.columns), Writes(to)}}, to.rows * to.columns,
          [=] DT_DEVICE(int64_t at) {
            const int64_t column = at % to.columns;
            to.data[at / to.columns * to.stride + column] = values[column];
          });
}

void SumOverRows(CudaQueue& queue, const DeviceMatrix& x, bool accumulate, float* sum, float* twin,
                 int64_t twin_columns) {
  ForEachRow(
      queue,
      {"sum over rows",
       {Reads(x), Stores(sum, x.columns, accumulate), Stores(twin, twin_columns, accumulate)}},
      x.columns, x.rows, 0.0f,
      [=] DT_DEVICE(int64_t column, int64_t row) { return x.data[row * x.stride + column]; },
      [=] DT_DEVICE(float a, float b) { return a + b; },
      [=] DT_DEVICE(int64_t column, float total) {
        sum[column] = accumulate ? sum[column] + total : total;
        if (column >= twin_columns) return;
        twin[column] = accumulate ? twin[column] + total : total;
      });
}

void TakeRows(CudaQueue& queue, const int32_t* tokens, int64_t apart, const DeviceMatrix& from,
              const DeviceMatrix& to) {
  const Access reads =
      Reads(tokens, 1).Repeated(to.rows, static_cast<size_t>(apart) * sizeof(*tokens));
  ForEach(queue,
          {"take rows",
           {reads, Reads(from).Only(std::min(from.rows, to.rows) * to.columns), Writes(to)}},
          to.rows * to.columns, [=] DT_DEVICE(int64_t at) {
            const int64_t row = at / to.columns, i = at % to.columns, token = tokens[row * apart];
            const bool known = token >= 0 && token < from.rows;
            to.data[row * to.stride + i] = known ? from.data[token * from.stride + i] : NAN;
          });
}

void FindLengths(CudaQueue& queue, const int32_t* tokens, int64_t sentences, int64_t steps,
                 int64_t pad, int32_t* lengths) {
  ForEach(queue, {"find lengths", {Reads(tokens, sentences * steps), Writes(lengths, sentences)}},
          sentences, [=] DT_DEVICE(int64_t n) {
            lengths[n] = static_cast<int32_t>(SentenceLength(tokens + n * steps, steps, pad));
          });
}

}  // namespace dtrain
