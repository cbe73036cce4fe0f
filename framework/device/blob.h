// A Blob is one version of an arena (weights, momentum, residual, ...).  It is reference-counted, immutable while
// shared, and its memory belongs to a pool.
//
// To update a shared Blob, write the next version into another buffer of the pool; an unshared one is updated in place.
// So evaluation, checkpoints, prefetched pulls and virtual workers can keep a version without copying it.  References
// may be copied and dropped on any thread; the pool must outlive them.  Buffers return to the pool, so a running step
// loop allocates nothing.
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

// Holds the state that all references to one Blob share.  The memory's owner creates it.
struct BlobBody {
  BlobOwner* owner = nullptr;
  float* data = nullptr;
  DeviceQueue* queue = nullptr;  // the device that owns the memory; null: host memory
  int64_t elements = 0;
  DType dtype = DType::kF32;
  // The Blob is in shared memory that another process wrote; that process counts its readers.
  bool foreign = false;
  std::atomic<int> references{0};
};

// BlobOwner is the owner of Blobs' memory; it outlives them.
class BlobOwner {
 public:
  // It is called when the last reference is gone, on any thread.
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
  // True if others hold this version too, or another process wrote it.
  bool shared() const;

  // Returns the memory to write, for the one updater.  The Blob must not be shared.
  float* MutableF32();

  // For owners: create the first reference to a body, and return the body of a Blob.
  static Blob First(BlobBody& body);
  const BlobBody* body() const { return body_; }

 private:
  explicit Blob(BlobBody* body) : body_(body) {}
  BlobBody* body_ = nullptr;
};

// BlobSource is a source of Blobs in memory that other processes can read.
class BlobSource {
 public:
  // Returns an empty Blob if there is no room.
  virtual Blob New(int64_t elements) = 0;

 protected:
  ~BlobSource() = default;
};

// The place of Blobs' memory: a device, or host memory, pinned if a device copies from and to it.
struct BlobMemory {
  Device device = {};
  std::shared_ptr<DeviceQueue> pinned_for = nullptr;
};

// Makes Blobs of one size and type.
class BlobPool final : public BlobOwner {
 public:
  BlobPool(int64_t elements, DType dtype, BlobMemory memory = {});
  ~BlobPool();  // all Blobs must be gone

  Blob New();  // content unspecified (zero if newly allocated)
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

// BlobPools keeps one BlobPool for each size.
//
// New allocates the exact size: a run's arenas, shards and buckets have few sizes, and 39 million floats must not take
// the memory of 64 million.  NewRoom is for vectors whose size differs each time (sparse vectors): it rounds up to one
// of eight capacities per doubling, so that at most an eighth is wasted and buffers can be reused.
class BlobPools {
 public:
  explicit BlobPools(BlobMemory memory = {}) : memory_(std::move(memory)) {}

  const Device& device() const { return memory_.device; }  // the device whose memory they use
  Blob CopyOf(std::span<const float> values) {
    Blob blob = New(static_cast<int64_t>(values.size()));
    CopyIn({blob.MutableF32(), device().queue.get()}, values.data(), blob.size());
    return blob;
  }
  Blob New(int64_t elements) { return PoolOf(elements, memory_, pools_).New(); }
  // Returns memory for vectors that will be sent; the node's other ranks can read it if there was room.
  Blob NewToSend(int64_t elements) {
    Blob blob = to_send_ == nullptr ? Blob() : to_send_->New(elements);
    return blob ? blob : New(elements);
  }
  // Sets the source that NewToSend tries first; it must outlive the last call of NewToSend.
  void SendFrom(BlobSource* source) { to_send_ = source; }
  // Returns a Blob of at least `elements`.  It is in host memory, not pinned, also where the others are in a device's.
  Blob NewRoom(int64_t elements) { return PoolOf(CapacityFor(elements), {}, rooms_).New(); }

  // Returns the smallest capacity for so many elements: m * 2^e with 8 <= m < 16, at least kLeastRoom.
  static int64_t CapacityFor(int64_t elements) {
    if (elements <= kLeastRoom) return kLeastRoom;
    const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(elements - 1)) - 4);
    return (elements + step - 1) / step * step;
  }
  static constexpr int64_t kLeastRoom = 64;

 private:
  using Pools = std::map<int64_t, std::unique_ptr<BlobPool>>;

  static BlobPool& PoolOf(int64_t elements, const BlobMemory& memory, Pools& pools) {
    std::unique_ptr<BlobPool>& pool = pools[elements];
    if (pool == nullptr) pool = std::make_unique<BlobPool>(elements, DType::kF32, memory);
    return *pool;
  }

  const BlobMemory memory_;
  Pools pools_, rooms_;
  BlobSource* to_send_ = nullptr;
};

}  // namespace dtrain
