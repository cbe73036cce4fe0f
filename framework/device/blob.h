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

class BlobOwner;

// What the references to one Blob share.  Made by the owner of its memory.
struct BlobBody {
  BlobOwner* owner = nullptr;
  float* data = nullptr;
  DeviceQueue* queue = nullptr;  // whose memory that is; null: the machine's
  int64_t elements = 0;
  DType dtype = DType::kF32;
  bool foreign = false;  // another process has written it, and counts who reads it
  std::atomic<int> references{0};
};

// Whose memory Blobs are; it outlives them.
class BlobOwner {
 public:
  // The last reference is gone.  On any thread.
  virtual void Return(BlobBody* body) = 0;

 protected:
  ~BlobOwner() = default;
};

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
  ConstArena arena() const;
  int64_t size() const;  // elements
  DType dtype() const;
  bool shared() const;  // somebody else holds this version as well, or it is not ours to write

  // For the one updater: the memory to write.  The Blob must not be shared.
  float* MutableF32();

  // For owners: the first reference to a body, and the body of a Blob.
  static Blob First(BlobBody& body);
  const BlobBody* body() const { return body_; }

 private:
  explicit Blob(BlobBody* body) : body_(body) {}
  BlobBody* body_ = nullptr;
};

// Where Blobs may come from that other processes shall see.
class BlobSource {
 public:
  // None when there is no room.
  virtual Blob New(int64_t elements) = 0;

 protected:
  ~BlobSource() = default;
};

// Where the memory of Blobs is: a device's, or the machine's, pinned for one that copies from and to it.
struct BlobMemory {
  Device device = {};
  std::shared_ptr<DeviceQueue> pinned_for = nullptr;
};

// Makes Blobs of one size and type.
class BlobPool final : public BlobOwner {
 public:
  BlobPool(int64_t elements, DType dtype, BlobMemory memory = {});
  ~BlobPool();  // all Blobs must be gone

  Blob New();  // content unspecified (zero when fresh)
  int64_t elements() const { return elements_; }
  void Return(BlobBody* body) override;

 private:
  struct Body;

  const int64_t elements_;
  const DType dtype_;
  const BlobMemory memory_;
  std::mutex mutex_;  // guards free_ and all_
  std::vector<BlobBody*> free_;
  std::vector<std::unique_ptr<Body>> all_;
};

// BlobPools: a BlobPool for each size that is asked for.
//
// New is exact: arenas, shards and buckets have a few sizes a run, and one of 39 million floats
// shall not take the memory of 64.  NewRoom is for what has another size each time (sparse
// vectors): it gives one of few capacities, eight to each doubling, so that at most an eighth is
// left over and a buffer fits the next one again.
class BlobPools {
 public:
  explicit BlobPools(BlobMemory memory = {}) : memory_(std::move(memory)) {}

  const Device& device() const { return memory_.device; }  // in whose memory they are
  Blob CopyOf(std::span<const float> values) {
    Blob blob = New(static_cast<int64_t>(values.size()));
    CopyIn({blob.MutableF32(), device().queue.get()}, values.data(), blob.size());
    return blob;
  }
  Blob New(int64_t elements) { return PoolOf(elements, memory_).New(); }
  // For what will be sent: where the other ranks of the node can read it, if there is room.
  Blob NewToSend(int64_t elements) {
    Blob blob = to_send_ == nullptr ? Blob() : to_send_->New(elements);
    return blob ? blob : New(elements);
  }
  // Where NewToSend looks first; outlives the last call of it.
  void SendFrom(BlobSource* source) { to_send_ = source; }
  // At least so many elements, which no device copies.
  Blob NewRoom(int64_t elements) { return PoolOf(CapacityFor(elements), {memory_.device}).New(); }

  // The smallest capacity for so many: m * 2^e with 8 <= m < 16, and not below kLeastRoom.
  static int64_t CapacityFor(int64_t elements) {
    if (elements <= kLeastRoom) return kLeastRoom;
    const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(elements - 1)) - 4);
    return (elements + step - 1) / step * step;
  }
  static constexpr int64_t kLeastRoom = 64;

 private:
  BlobPool& PoolOf(int64_t elements, const BlobMemory& memory) {
    std::unique_ptr<BlobPool>& pool = pools_[elements];
    if (pool == nullptr) pool = std::make_unique<BlobPool>(elements, DType::kF32, memory);
    return *pool;
  }

  const BlobMemory memory_;
  std::map<int64_t, std::unique_ptr<BlobPool>> pools_;
  BlobSource* to_send_ = nullptr;
};

}  // namespace dtrain
