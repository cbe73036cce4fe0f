// Defines loops on the GPU, for the CUDA module's sources.
//
// Every kernel that is not a library's is one of these loops, with a device lambda for the work on one element, which
// captures by value:
//
//   ForEach(queue, {"relu", {Reads(x, n), Writes(y, n)}}, n,
//           [=] DT_DEVICE(int64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//
// The launch says what the kernel touches (framework/device/cuda/access.h).
//
// A function that contains such a lambda must be a free function or a public member: nvcc allows no other.  If the
// compiler is not nvcc, the host runs the same loops in the stream's order, for tests on a machine without a GPU
// (tests/cuda/standin).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

#include "framework/device/cuda/access.h"
#include "framework/device/cuda/queue.h"
#include "framework/device/device_code.h"

namespace dtrain {

struct Nothing {
  DT_DEVICE void operator()(int64_t) const {}
};
// Work that a launch of ForEachColumn does beside its columns: f(i) for 0 <= i < count, in any order, at the same time.  So
// it must not write what the columns' functions read, nor read what they write.
template <class F = Nothing>
struct Beside {
  int64_t count = 0;
  F f = {};
};

#ifdef __CUDACC__

namespace loops {

constexpr int kThreads = 256;  // threads per block
constexpr int64_t kMaxBlocks = 65535;

template <class F>
__global__ void EachElement(int64_t count, F f) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) f(i);
}

// One block reduces one row: each thread computes a partial result, then a tree joins them.
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

constexpr int kTile = 32;                 // columns of a block of EachColumn
constexpr int kLanes = kThreads / kTile;  // threads of it that share a column

// Returns the sum of all lanes' values of a column, in lane 0.
template <class T>
__device__ T JoinLanes(T (*lanes)[kTile], const T& value) {
  lanes[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  T sum{};
  if (threadIdx.y == 0) {
    for (int lane = 0; lane < kLanes; ++lane) sum = sum + lanes[lane][threadIdx.x];
  }
  __syncthreads();
  return sum;
}

// Reads what another block has written: L1 may hold an older line.
template <class T>
__device__ T ReadFromL2(const T* from) {
  static_assert(sizeof(T) % sizeof(double) == 0);
  T value;
  for (size_t k = 0; k < sizeof(T) / sizeof(double); ++k) {
    reinterpret_cast<double*>(&value)[k] = __ldcg(reinterpret_cast<const double*>(from) + k);
  }
  return value;
}

constexpr unsigned Tiles(int64_t columns) {
  return static_cast<unsigned>((columns + kTile - 1) / kTile);
}

// Each block adds up a slice of the rows of some columns; the one that ends last adds up the slices.  Blocks behind those
// of the last columns do what is beside.
template <class T, class Value, class Done, class F>
__global__ void EachColumn(int64_t rows, int64_t columns, T* partial, unsigned* finished,
                           Value value, Done done, Beside<F> beside) {
  __shared__ T lanes[kLanes][kTile];
  __shared__ bool last;
  if (blockIdx.x >= Tiles(columns)) {
    const int64_t block = int64_t{blockIdx.x - Tiles(columns)} * gridDim.y + blockIdx.y;
    const int64_t stride = int64_t{gridDim.x - Tiles(columns)} * gridDim.y * kThreads;
    const int64_t first = block * kThreads + threadIdx.y * kTile + threadIdx.x;
    for (int64_t i = first; i < beside.count; i += stride) beside.f(i);
    return;
  }
  const int64_t column = int64_t{blockIdx.x} * kTile + threadIdx.x;
  const bool first_lane = threadIdx.y == 0, first = first_lane && threadIdx.x == 0;
  const unsigned slices = gridDim.y;
  T sum{};
  if (column < columns) {
    for (int64_t row = int64_t{blockIdx.y} * kLanes + threadIdx.y; row < rows;
         row += int64_t{slices} * kLanes) {
      sum = sum + value(row, column);
    }
  }
  sum = JoinLanes(lanes, sum);
  if (slices == 1) {  // then no other block has a part
    if (first_lane && column < columns) done(column, sum);
    return;
  }
  if (first_lane && column < columns) partial[blockIdx.y * columns + column] = sum;
  __threadfence();
  __syncthreads();
  if (first) last = atomicAdd(finished + blockIdx.x, 1u) == slices - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  T all{};
  if (column < columns) {
    for (unsigned slice = threadIdx.y; slice < slices; slice += kLanes) {
      all = all + ReadFromL2(partial + slice * columns + column);
    }
  }
  all = JoinLanes(lanes, all);
  if (first_lane && column < columns) done(column, all);
  if (first) finished[blockIdx.x] = 0;
}

inline unsigned Blocks(int64_t wanted) {
  return static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
}

}  // namespace loops

// *at = min(*at, value), whatever other threads do.
__device__ inline void AtomicMin(unsigned long long* at, unsigned long long value) {
  atomicMin(at, value);
}

// Calls f(i) for 0 <= i < count, in any order.
template <class F>
void ForEach(CudaQueue& queue, const KernelLaunch&, int64_t count, F f) {
  if (count == 0) return;
  loops::EachElement<<<loops::Blocks((count + loops::kThreads - 1) / loops::kThreads),
                       loops::kThreads, 0, queue.stream()>>>(count, f);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

// Calls done(row, result) for every row, where result is value(row, 0) joined with value(row, 1), ...  `join` must be
// associative and commutative, and `start` its neutral element.  The order of joining is fixed, so equal inputs give
// bitwise equal results.
template <class T, class Value, class Join, class Done>
void ForEachRow(CudaQueue& queue, const KernelLaunch&, int64_t rows, int64_t columns, T start,
                Value value, Join join, Done done) {
  if (rows == 0) return;
  loops::EachRow<<<loops::Blocks(rows), loops::kThreads, 0, queue.stream()>>>(rows, columns, start,
                                                                              value, join, done);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

// Calls done(column, value(0, column) + value(1, column) + ...) for every column, in an order of additions that depends
// on the three numbers alone.  `partial` is room for slices * columns sums, which one slice does not touch.  `finished`
// is a counter for every 32 columns, which are 0, and are 0 again afterwards.  `beside` is done on blocks of its own.
template <class T, class Value, class Done, class F>
void ForEachColumn(CudaQueue& queue, const KernelLaunch&, int64_t rows, int64_t columns,
                   int64_t slices, T* partial, unsigned* finished, Value value, Done done,
                   const Beside<F>& beside) {
  const int64_t at_once = loops::kThreads * slices;  // elements beside of blocks with one x
  const dim3 blocks(loops::Tiles(columns) + loops::Blocks((beside.count + at_once - 1) / at_once),
                    static_cast<unsigned>(slices));
  loops::EachColumn<<<blocks, dim3(loops::kTile, loops::kLanes), 0, queue.stream()>>>(
      rows, columns, partial, finished, value, done, beside);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

#else

inline void AtomicMin(unsigned long long* at, unsigned long long value) {
  *at = std::min(*at, value);
}

// The stand-in runs `run` in the stream, which may touch what the launch names.
void StandinKernel(cudaStream_t stream, const KernelLaunch& launch, std::function<void()> run);

namespace loops {

inline void InStream(CudaQueue& queue, const KernelLaunch& launch, std::function<void()> work) {
  StandinKernel(queue.stream(), launch, std::move(work));
}

}  // namespace loops

template <class F>
void ForEach(CudaQueue& queue, const KernelLaunch& launch, int64_t count, F f) {
  if (count == 0) return;
  loops::InStream(queue, launch, [=] {
    for (int64_t i = 0; i < count; ++i) f(i);
  });
}

template <class T, class Value, class Join, class Done>
void ForEachRow(CudaQueue& queue, const KernelLaunch& launch, int64_t rows, int64_t columns,
                T start, Value value, Join join, Done done) {
  if (rows == 0) return;
  loops::InStream(queue, launch, [=] {
    for (int64_t row = 0; row < rows; ++row) {
      T result = start;
      for (int64_t c = 0; c < columns; ++c) result = join(result, value(row, c));
      done(row, result);
    }
  });
}

template <class T, class Value, class Done, class F>
void ForEachColumn(CudaQueue& queue, const KernelLaunch& launch, int64_t rows, int64_t columns,
                   int64_t slices, T* partial, unsigned* finished, Value value, Done done,
                   const Beside<F>& beside) {
  loops::InStream(queue, launch, [=] {
    for (int64_t i = 0; i < beside.count; ++i) beside.f(i);
    const auto sum_of = [=](int64_t slice, int64_t column) {
      T sum{};
      for (int64_t row = slice; row < rows; row += slices) sum = sum + value(row, column);
      return sum;
    };
    for (int64_t column = 0; column < columns; ++column) {
      if (slices == 1) {
        done(column, sum_of(0, column));
        continue;
      }
      for (int64_t slice = 0; slice < slices; ++slice) {
        partial[slice * columns + column] = sum_of(slice, column);
      }
      T all{};
      for (int64_t slice = 0; slice < slices; ++slice) {
        all = all + partial[slice * columns + column];
      }
      done(column, all);
    }
    if (slices > 1 && *finished != 0) std::abort();
  });
}

#endif

}  // namespace dtrain
