// Stream compaction on the GPU by CUB's DeviceSelect: lists the indices for which a predicate holds, in ascending
// order.  If the compiler is not nvcc (tests without a GPU), the host does the same work in the stream's order, as in
// loops.h.
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

// Returns the scratch memory, in bytes, that Compact needs for `count` indices.
template <class Wanted>
size_t CompactScratchBytes(int count, Wanted wanted) {
  int32_t* const none = nullptr;
  size_t bytes = 0;
  DT_CUDA(cub::DeviceSelect::If, nullptr, bytes, thrust::counting_iterator<int32_t>(0), none, none,
          count, wanted);
  return bytes;
}

// Writes the indices i in [0, count) with wanted(i) to `kept`, ascending, and their number to *kept_count.  `kept` must
// have room for `count` indices.  `wanted_reads` is what `wanted` reads.
template <class Wanted>
void Compact(CudaQueue& queue, int count, Wanted wanted, const Access&, int32_t* kept,
             int32_t* kept_count, void* scratch, size_t bytes) {
  DT_CUDA(cub::DeviceSelect::If, scratch, bytes, thrust::counting_iterator<int32_t>(0), kept,
          kept_count, count, wanted, queue.stream());
}

#else

template <class Wanted>
size_t CompactScratchBytes(int, Wanted) {
  return 1;
}

template <class Wanted>
void Compact(CudaQueue& queue, int count, Wanted wanted, const Access& wanted_reads, int32_t* kept,
             int32_t* kept_count, void*, size_t) {
  loops::InStream(queue, {"compact", {wanted_reads, Writes(kept, count), Writes(kept_count, 1)}},
                  [=] {
                    int32_t found = 0;
                    for (int32_t i = 0; i < count; ++i) {
                      if (wanted(i)) kept[found++] = i;
                    }
                    *kept_count = found;
                  });
}

#endif

}  // namespace dtrain
