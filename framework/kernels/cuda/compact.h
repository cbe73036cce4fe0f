// Which indices of a range are wanted, in order, on the GPU, for the CUDA module's sources that nvcc
// compiles: CUB's selection.  Where the compiler is not nvcc it is done in the stream's order on the
// host, as loops.h does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/kernels/cuda/loops.h"

#ifdef __CUDACC__
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_select.cuh>
#endif

namespace dtrain {

#ifdef __CUDACC__

// Scratch that Compact wants for so many indices.
template <class Wanted>
size_t CompactScratchBytes(int count, Wanted wanted) {
  int32_t* const none = nullptr;
  size_t bytes = 0;
  DT_CUDA(cub::DeviceSelect::If, nullptr, bytes, thrust::counting_iterator<int32_t>(0), none, none,
          count, wanted);
  return bytes;
}

// kept = those of 0 <= i < count with wanted(i), ascending, and how many there are; room for `count`.
template <class Wanted>
void Compact(CudaQueue& queue, int count, Wanted wanted, int32_t* kept, int32_t* kept_count,
             void* scratch, size_t bytes) {
  DT_CUDA(cub::DeviceSelect::If, scratch, bytes, thrust::counting_iterator<int32_t>(0), kept,
          kept_count, count, wanted, queue.stream());
}

#else

template <class Wanted>
size_t CompactScratchBytes(int, Wanted) {
  return 1;
}

template <class Wanted>
void Compact(CudaQueue& queue, int count, Wanted wanted, int32_t* kept, int32_t* kept_count, void*,
             size_t) {
  loops::InStream(queue, [=] {
    int32_t found = 0;
    for (int32_t i = 0; i < count; ++i) {
      if (wanted(i)) kept[found++] = i;
    }
    *kept_count = found;
  });
}

#endif

}  // namespace dtrain
