// Blob: one version of an arena (weights, momentum, residual, ...): immutable for those who share
// it, reference-counted, from a pool.
//
// Whoever updates a Blob that is shared writes the next version into another buffer of the pool; an
// unshared one is updated in place.  So evaluation, checkpoints, prefetched pulls and virtual
// workers hold on to a version without copying it.  References may be copied and dropped on any
// thread; the pool must outlive them.  The steady state allocates nothing: buffers return to the
// pool.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/device/tensor.h"

namespace dtrain {

class BlobPool;

class Blob {
 public:
  Blob() = default;
  Blob(const Blob& other);
  Blob(Blob&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Blob& operator=(Blob other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Blob();

  explicit operator bool() const { return body_ != nullptr; }
  const float* f32() const;
  int64_t size() const;  // elements
  DType dtype() const;
  bool shared() const;  // somebody else holds this version as well

  // For the one updater: the memory to write.  The Blob must not be shared.
  float* MutableF32();

 private:
  friend class BlobPool;
  struct Body;
  explicit Blob(Body* body) : body_(body) {}
  Body* body_ = nullptr;
};

// Makes Blobs of one size and type.
class BlobPool {
 public:
  BlobPool(int64_t elements, DType dtype);
  ~BlobPool();  // all Blobs must be gone

  Blob New();  // content unspecified (zero when fresh)
  int64_t elements() const { return elements_; }

 private:
  friend class Blob;
  void Return(Blob::Body* body);

  const int64_t elements_;
  const DType dtype_;
  std::mutex mutex_;  // guards free_ and all_
  std::vector<Blob::Body*> free_;
  std::vector<std::unique_ptr<Blob::Body>> all_;
};

// BlobPools: a BlobPool for each size that is asked for.
//
// New is exact: arenas, shards and buckets have a few sizes a run, and one of 39 million floats
// shall not take the memory of 64.  NewRoom is for what has another size each time (sparse
// vectors): it gives one of few capacities, eight to each doubling, so that at most an eighth is
// left over and a buffer fits the next one again.
class BlobPools {
 public:
  Blob CopyOf(std::span<const float> values) {
    Blob blob = New(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), blob.MutableF32());
    return blob;
  }
  Blob New(int64_t elements) {
    std::unique_ptr<BlobPool>& pool = pools_[elements];
    if (pool == nullptr) pool = std::make_unique<BlobPool>(elements, DType::kF32);
    return pool->New();
  }
  // At least so many elements.
  Blob NewRoom(int64_t elements) { return New(CapacityFor(elements)); }

  // The smallest capacity for so many: m * 2^e with 8 <= m < 16, and not below kLeastRoom.
  static int64_t CapacityFor(int64_t elements) {
    if (elements <= kLeastRoom) return kLeastRoom;
    const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(elements - 1)) - 4);
    return (elements + step - 1) / step * step;
  }
  static constexpr int64_t kLeastRoom = 64;

 private:
  std::map<int64_t, std::unique_ptr<BlobPool>> pools_;
};

}  // namespace dtrain
