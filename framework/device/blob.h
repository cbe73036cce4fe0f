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
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/device/dtype.h"

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

 private:
  std::map<int64_t, std::unique_ptr<BlobPool>> pools_;
};

}  // namespace dtrain
