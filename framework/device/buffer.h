// Buffer owns memory that is 64-byte aligned, zeroed and touched once when it is allocated.
//
// Large buffers ask for 2 MiB pages: a fresh 4 KiB page costs about 2 us on a virtual machine, so
// everything the step loop needs is allocated and touched before it starts.  Move-only.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "framework/device/arena.h"

namespace dtrain {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);  // throws UsageError with the wanted bytes if there is no room
  Buffer(const Device& device, size_t bytes);  // memory of the device
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        queue_(std::move(other.queue_)),
        pinned_(std::move(other.pinned_)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(queue_, other.queue_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }

  // Pins host memory from and to which a device copies in every step (DeviceQueue::Pin).
  void PinFor(const std::shared_ptr<DeviceQueue>& queue);

  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  Arena arena() const { return {f32(), queue_.get()}; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<DeviceQueue> queue_;   // device that owns the memory; null: host memory
  std::shared_ptr<DeviceQueue> pinned_;  // device it is pinned for; null: none
};

// PinnedBuffer owns zeroed host memory that a device's kernels read and write, too (DeviceQueue::AllocatePinned).
class PinnedBuffer {
 public:
  PinnedBuffer(std::shared_ptr<DeviceQueue> queue, size_t bytes);
  ~PinnedBuffer() { queue_->FreePinned(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  void* data() const { return data_; }

 private:
  const std::shared_ptr<DeviceQueue> queue_;
  void* const data_;
};

}  // namespace dtrain
