// Loops on the GPU, for the CUDA module's sources.
//
// Every kernel of our own is one of these, given what it does for one element, as a lambda that
// captures by value:
//
//   ForEach(queue, n, [=] DT_DEVICE(int64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//
// A function that holds such a lambda is free or public: nvcc allows no other.  Where the compiler is
// not nvcc the same loops run in the stream's order on the host, for tests on a machine without a GPU
// (tests/cuda/standin).
#pragma once

#include <cstdint>

#include "framework/device/cuda/queue.h"
#include "framework/device/device_code.h"

namespace dtrain {

#ifdef __CUDACC__

namespace loops {

constexpr int kThreads = 256;  // of a block
constexpr int64_t kMaxBlocks = 65535;

template <class F>
__global__ void EachElement(int64_t count, F f) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) f(i);
}

// A block a row: partial results of the threads, then a tree over them.
template <class T, class Value, class Join, class Done>
__global__ void EachRow(int64_t rows, int64_t columns, T start, Value value, Join join, Done done) {
  __shared__ T partial[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    T result = start;
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) result = join(result, value(row, c));
    partial[threadIdx.x] = result;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) {
        partial[threadIdx.x] = join(partial[threadIdx.x], partial[threadIdx.x + half]);
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) done(row, partial[0]);
    __syncthreads();
  }
}

inline unsigned Blocks(int64_t wanted) {
  return static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
}

}  // namespace loops

// f(i) for 0 <= i < count, in any order.
template <class F>
void ForEach(CudaQueue& queue, int64_t count, F f) {
  if (count == 0) return;
  loops::EachElement<<<loops::Blocks((count + loops::kThreads - 1) / loops::kThreads),
                       loops::kThreads, 0, queue.stream()>>>(count, f);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

// done(row, value(row, 0) joined with value(row, 1), ...) for every row.  `join` is associative and
// commutative, `start` its neutral element; the order of joining is fixed, so that equal numbers give
// equal bits.
template <class T, class Value, class Join, class Done>
void ForEachRow(CudaQueue& queue, int64_t rows, int64_t columns, T start, Value value, Join join,
                Done done) {
  if (rows == 0) return;
  loops::EachRow<<<loops::Blocks(rows), loops::kThreads, 0, queue.stream()>>>(rows, columns, start,
                                                                              value, join, done);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

#else

namespace loops {

// Runs `work` when the stream comes to it.
template <class Work>
void InStream(CudaQueue& queue, Work work) {
  const auto run = [](void* held) {
    const std::unique_ptr<Work> mine(static_cast<Work*>(held));
    (*mine)();
  };
  DT_CUDA(cudaLaunchHostFunc, queue.stream(), run, new Work(std::move(work)));
}

}  // namespace loops

template <class F>
void ForEach(CudaQueue& queue, int64_t count, F f) {
  loops::InStream(queue, [=] {
    for (int64_t i = 0; i < count; ++i) f(i);
  });
}

template <class T, class Value, class Join, class Done>
void ForEachRow(CudaQueue& queue, int64_t rows, int64_t columns, T start, Value value, Join join,
                Done done) {
  loops::InStream(queue, [=] {
    for (int64_t row = 0; row < rows; ++row) {
      T result = start;
      for (int64_t c = 0; c < columns; ++c) result = join(result, value(row, c));
      done(row, result);
    }
  });
}

#endif

}  // namespace dtrain
