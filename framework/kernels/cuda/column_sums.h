// Column sums of a matrix whose elements are computed on the fly by a device lambda.
//
//   SumColumns(queue, sums, partial,
//              [=] DT_DEVICE(int64_t row, int64_t column) -> double { return ...; },
//              [=] DT_DEVICE(int64_t column, double sum) { ... });
#pragma once

#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"

namespace dtrain {

// Two sums that are computed together.
struct SumPair {
  double first, second;

  friend DT_DEVICE SumPair operator+(const SumPair& a, const SumPair& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// Calls done(column, value(0, column) + value(1, column) + ...) for every column.  T{} must be the neutral element of
// the addition; `partial` is scratch memory for sums.partial_sums() values of T.
template <class T, class Value, class Done>
void SumColumns(CudaQueue& queue, const ColumnSums& sums, T* partial, Value value, Done done) {
  const int64_t rows = sums.rows(), columns = sums.columns(), slices = sums.slices();
  ForEach(queue, sums.partial_sums(), [=] DT_DEVICE(int64_t i) {
    const int64_t column = i % columns;
    T sum{};
    for (int64_t row = i / columns; row < rows; row += slices) sum = sum + value(row, column);
    partial[i] = sum;
  });
  ForEachRow(
      queue, columns, slices, T{},
      [=] DT_DEVICE(int64_t column, int64_t slice) { return partial[slice * columns + column]; },
      [=] DT_DEVICE(const T& a, const T& b) { return a + b; }, done);
}

}  // namespace dtrain
