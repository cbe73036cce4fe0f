// Matrix: a non-owning view of a row-major float matrix, whose rows are `stride` floats apart.
//
// A tensor [N, T, W] is a matrix of N T rows; `Every` views one of its T steps, `Columns` a part of each row.  The
// fields are public because sources that end in _isa.cc must read them directly: the member functions are compiled
// for the baseline instruction set.
#pragma once

#include <cstdint>

#include "framework/core/layout.h"

namespace dtrain {

template <class Float>
struct MatrixView {
  Float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;

  // Returns a matrix whose rows follow each other without a gap.
  static MatrixView Dense(Float* data, int64_t rows, int64_t columns) {
    return {data, rows, columns, columns};
  }

  Float* Row(int64_t row) const { return data + row * stride; }
  MatrixView Rows(Range range) const { return {Row(range.begin), range.size(), columns, stride}; }
  MatrixView Columns(int64_t first, int64_t count) const {
    return {data + first, rows, count, stride};
  }
  // Returns the `count` rows first, first + step, first + 2 step, ...
  MatrixView Every(int64_t step, int64_t first, int64_t count) const {
    return {Row(first), count, columns, step * stride};
  }

  operator MatrixView<const Float>() const { return {data, rows, columns, stride}; }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace dtrain
