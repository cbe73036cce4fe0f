#include "framework/device/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace dtrain {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_ = std::aligned_alloc(alignment, rounded);
  if (data_ == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) ::madvise(data_, rounded, MADV_HUGEPAGE);
  std::memset(data_, 0, rounded);
}

Buffer::Buffer(const Device& device, size_t bytes) {
  if (device.queue == nullptr) {
    *this = Buffer(bytes);
  } else if (bytes > 0) {
    data_ = device.queue->Allocate(bytes);
    bytes_ = bytes;
    queue_ = device.queue;
  }
}

void Buffer::PinFor(const std::shared_ptr<DeviceQueue>& queue) {
  if (data_ != nullptr && queue_ == nullptr && queue->Pin(data_, bytes_)) pinned_ = queue;
}

Buffer::~Buffer() {
  if (pinned_ != nullptr) pinned_->Unpin(data_);
  if (queue_ == nullptr) {
    std::free(data_);
  } else if (data_ != nullptr) {
    queue_->Free(data_);
  }
}

}  // namespace dtrain
