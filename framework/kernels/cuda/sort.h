// Sorts stably on the GPU, by CUB's radix sort.  If the compiler is not nvcc (tests without a GPU), the host does the
// same work in the stream's order, as in loops.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/kernels/cuda/loops.h"

#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <utility>
#include <vector>
#endif

namespace dtrain {

// `count` pairs of a key, below 2^bits, and a value; and the arrays that receive them sorted.  These must not overlap with
// others; keys and values may be the same array.
struct PairsToSort {
  int count = 0;
  int bits = 32;
  const uint32_t* keys = nullptr;
  const int32_t* values = nullptr;
  uint32_t* sorted_keys = nullptr;
  int32_t* sorted_values = nullptr;
};

#ifdef __CUDACC__

// Returns the scratch memory, in bytes, that SortPairs needs for `count` pairs.
inline size_t SortScratchBytes(int count, int bits) {
  const PairsToSort none;
  size_t bytes = 0;
  DT_CUDA(cub::DeviceRadixSort::SortPairs, nullptr, bytes, none.keys, none.sorted_keys, none.values,
          none.sorted_values, count, 0, bits);
  return bytes;
}

// Sorts the pairs by key, ascending; pairs with equal keys keep their order.
inline void SortPairs(CudaQueue& queue, const PairsToSort& pairs, void* scratch, size_t bytes) {
  DT_CUDA(cub::DeviceRadixSort::SortPairs, scratch, bytes, pairs.keys, pairs.sorted_keys,
          pairs.values, pairs.sorted_values, pairs.count, 0, pairs.bits, queue.stream());
}

#else

inline size_t SortScratchBytes(int, int) { return 1; }

inline void SortPairs(CudaQueue& queue, const PairsToSort& pairs, void*, size_t) {
  const int64_t n = pairs.count;
  const auto sort = [=] {
    std::vector<std::pair<uint32_t, int32_t> > both;
    for (int i = 0; i < pairs.count; ++i) both.emplace_back(pairs.keys[i], pairs.values[i]);
    std::stable_sort(both.begin(), both.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (int i = 0; i < pairs.count; ++i) {
      pairs.sorted_keys[i] = both[i].first;
      pairs.sorted_values[i] = both[i].second;
    }
  };
  loops::InStream(queue,
                  {"sort",
                   {Reads(pairs.keys, n), Reads(pairs.values, n), Writes(pairs.sorted_keys, n),
                    Writes(pairs.sorted_values, n)}},
                  sort);
}

#endif

}  // namespace dtrain
