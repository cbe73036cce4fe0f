#include "framework/device/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/memory.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

// Pinning works on whole pages, so a large buffer does not share its pages with others.
size_t AlignmentOf(size_t bytes) {
  if (bytes >= kHugePage) return kHugePage;
  return bytes >= kPage ? kPage : 64;
}

// The system grants more than its memory, and then kills the process when it touches it.
size_t MachineBytes() {
  static const size_t bytes =
      static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = AlignmentOf(bytes);
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (bytes < MachineBytes()) data_ = std::aligned_alloc(alignment, rounded);
  if (data_ == nullptr) throw NoMemoryError(bytes);
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
  if (data_ == nullptr || queue_ != nullptr) return;
  if (queue->Pin(data_, bytes_)) {
    pinned_ = queue;
  } else if (static std::atomic<bool> reported = false; !reported.exchange(true)) {
    log::Warning(
        "memory cannot be locked for the GPU (`ulimit -l`?): copies to and from it will be slower");
  }
}

Buffer::~Buffer() {
  if (pinned_ != nullptr) pinned_->Unpin(data_);
  if (queue_ == nullptr) {
    std::free(data_);
  } else if (data_ != nullptr) {
    queue_->Free(data_);
  }
}

PinnedBuffer::PinnedBuffer(std::shared_ptr<DeviceQueue> queue, size_t bytes)
    : queue_(std::move(queue)), data_(queue_->AllocatePinned(bytes)) {
  std::memset(data_, 0, bytes);
}

}  // namespace dtrain
