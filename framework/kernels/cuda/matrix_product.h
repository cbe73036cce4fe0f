// Computes products of row-major matrices on the GPU with cuBLAS.
#pragma once

#include <cstdint>

#include "framework/device/cuda/access.h"
#include "framework/device/cuda/queue.h"
#include "framework/kernels/cuda/element_types.h"

namespace dtrain {

// Returns the device's queue with cuBLAS and its workspace in place.  A kernel that multiplies takes it when it is made:
// before the net places its memory in what is left, and before a step is captured.
inline CudaQueue& ProductQueueOf(const Device& device) {
  CudaQueue& queue = QueueOf(device);
  queue.blas();
  return queue;
}

// A non-owning view of a row-major matrix in the GPU's memory; rows are `stride` (>= columns) numbers apart.
struct DeviceMatrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
  // The same numbers in the precision's 16 bits, for a factor of many products (RoundOnce, CopyOf); null, or not at 16
  // bytes: each product rounds.
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;  // numbers from row to row of `rounded`

  static DeviceMatrix Dense(const float* data, int64_t rows, int64_t columns) {
    return {const_cast<float*>(data), rows, columns, columns};
  }

  DeviceMatrix Rows(int64_t first, int64_t count) const {
    return {At(data, first * stride),
            count,
            columns,
            stride,
            At(rounded, first * rounded_stride),
            rounded_stride};
  }
  DeviceMatrix Columns(int64_t first, int64_t count) const {
    return {At(data, first), rows, count, stride, At(rounded, first), rounded_stride};
  }
  // Returns the `count` rows first, first + step, first + 2 step, ...  With step = T this is step `first` of a tensor
  // [N, T, W].
  DeviceMatrix Every(int64_t step, int64_t first, int64_t count) const {
    return {At(data, first * stride),
            count,
            columns,
            step * stride,
            At(rounded, first * rounded_stride),
            step * rounded_stride};
  }

 private:
  template <class T>
  static T* At(T* numbers, int64_t i) {
    return numbers == nullptr ? nullptr : numbers + i;
  }
};

namespace access {
inline Access Of(const DeviceMatrix& m, bool reads, bool writes) {
  return Of(m.data, m.columns, reads, writes)
      .Repeated(m.rows, static_cast<size_t>(m.stride) * sizeof(float));
}
}  // namespace access

inline Access Reads(const DeviceMatrix& matrix) { return access::Of(matrix, true, false); }
inline Access Writes(const DeviceMatrix& matrix) { return access::Of(matrix, false, true); }
inline Access Updates(const DeviceMatrix& matrix) { return access::Of(matrix, true, true); }

// c = op(a) op(b), or c += if `add`; op transposes if transpose_a or transpose_b is set.  The sizes must fit
// (DT_CHECK).
struct ProductOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool add = false;
};
void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options = {});

// A factor of several products is rounded once:
//
//   const DeviceMatrix w = ToRoundIn(queue, matrix, room);
//   RoundOnce(queue, w);       // else the products round w each
//   Multiply(queue, x, w, y); Multiply(queue, z, w, u);
//
// A kernel that computes a factor writes fp32 and 16 bits: it gets CopyOf(queue, w), whose numbers are as far apart as
// those of w.  MultiplyEach reads no copy.
//
// Returns the floats of room for `numbers` numbers, a matrix's rows of whole strides; 0 if the precision has no 16 bits.
int64_t RoomToRound(const CudaQueue& queue, int64_t numbers);
// Returns the matrix with `room` for its 16 bits; without, if the precision has none or its rows are no whole packs, which
// tensor cores want.
DeviceMatrix ToRoundIn(const CudaQueue& queue, DeviceMatrix matrix, float* room);
// The same for a matrix that RoundOnce rounds: rows that are no whole packs are padded, so its room is for
// rows * WholePacks(columns) numbers.
DeviceMatrix ToRoundPaddedIn(const CudaQueue& queue, DeviceMatrix matrix, float* room);
constexpr int64_t WholePacks(int64_t numbers) { return (numbers + 7) / 8 * 8; }
// Rounds matrix.data to matrix.rounded, if that is not null.
void RoundOnce(CudaQueue& queue, const DeviceMatrix& matrix);
// Returns matrix.rounded for a kernel that writes it.
RoundedCopy CopyOf(const CudaQueue& queue, const DeviceMatrix& matrix);
// Returns the matrix without its fp32 numbers if it has 16 bits: for one that products alone read.
inline DeviceMatrix In16BitsAlone(DeviceMatrix matrix) {
  if (matrix.rounded != nullptr) matrix.data = nullptr;
  return matrix;
}
inline Access WritesCopy(const DeviceMatrix& matrix) {
  return Writes(matrix.rounded, matrix.columns)
      .Repeated(matrix.rows, static_cast<size_t>(matrix.rounded_stride) * sizeof(uint16_t));
}

// Matrices of equal size; each begins `apart` floats after the previous one.
struct DeviceMatrices {
  DeviceMatrix first;
  int64_t apart = 0;
};
// Computes `count` products, each of the next matrices of a, b and c.
void MultiplyEach(CudaQueue& queue, int64_t count, const DeviceMatrices& a, const DeviceMatrices& b,
                  const DeviceMatrices& c, const ProductOptions& options = {});

}  // namespace dtrain
