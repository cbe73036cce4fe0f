// Arena is a view of the floats of weights, gradients or statistics, in host memory or a device's.  It owns nothing.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "framework/device/device.h"

namespace dtrain {

template <class Float>
struct ArenaView {
  Float* data = nullptr;
  DeviceQueue* queue = nullptr;  // device that owns the memory; null: host memory

  // Refers to host memory, for callers that use no device.
  ArenaView(Float* host = nullptr) : data(host) {}
  ArenaView(Float* memory, DeviceQueue* whose) : data(memory), queue(whose) {}
  template <class Other>
  requires std::convertible_to<Other*, Float*> ArenaView(const ArenaView<Other>& other)
      : data(other.data), queue(other.queue) {}

  ArenaView From(int64_t first) const { return {data + first, queue}; }
};

using Arena = ArenaView<float>;
using ConstArena = ArenaView<const float>;

// Synchronous copies, for the begin of a run and for boundaries, not for a step.
inline void CopyIn(Arena to, const float* from, int64_t n) {
  if (to.queue == nullptr) {
    std::copy_n(from, n, to.data);
  } else {
    to.queue->Upload(to.data, from, static_cast<size_t>(n) * sizeof(float));
    to.queue->Record().Wait();
  }
}
inline void CopyOut(float* to, ConstArena from, int64_t n) {
  if (from.queue == nullptr) {
    std::copy_n(from.data, n, to);
  } else {
    from.queue->Download(to, from.data, static_cast<size_t>(n) * sizeof(float));
    from.queue->Record().Wait();
  }
}
inline std::vector<float> FloatsOf(ConstArena from, int64_t n) {
  std::vector<float> floats(static_cast<size_t>(n));
  CopyOut(floats.data(), from, n);
  return floats;
}
// Between any two memories.
inline void CopyArena(Arena to, ConstArena from, int64_t n) {
  if (to.queue == nullptr) {
    CopyOut(to.data, from, n);
  } else if (from.queue == nullptr) {
    CopyIn(to, from.data, n);
  } else {
    CopyIn(to, FloatsOf(from, n).data(), n);
  }
}

}  // namespace dtrain
