#include "framework/device/blob.h"

#include "framework/core/check.h"

namespace dtrain {

struct BlobPool::Body : BlobBody {
  Buffer buffer;
};

Blob::Blob(const Blob& other) : body_(other.body_) {
  if (body_ != nullptr) body_->references.fetch_add(1, std::memory_order_relaxed);
}

Blob::~Blob() {
  if (body_ != nullptr && body_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    body_->owner->Return(body_);
  }
}

Blob Blob::First(BlobBody& body) {
  body.references.store(1, std::memory_order_relaxed);
  return Blob(&body);
}

const float* Blob::f32() const { return body_->data; }
ConstArena Blob::arena() const { return {body_->data, body_->queue}; }
int64_t Blob::size() const { return body_->elements; }
DType Blob::dtype() const { return body_->dtype; }
bool Blob::shared() const {
  return body_->foreign || body_->references.load(std::memory_order_acquire) > 1;
}

float* Blob::MutableF32() {
  DT_CHECK(!shared()) << "a shared Blob is immutable";
  return body_->data;
}

BlobPool::BlobPool(int64_t elements, DType dtype, BlobMemory memory)
    : elements_(elements), dtype_(dtype), memory_(std::move(memory)) {}

BlobPool::~BlobPool() {
  DT_CHECK(free_.size() == all_.size())
      << all_.size() - free_.size() << " Blobs outlive their pool";
}

Blob BlobPool::New() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    auto body = std::make_unique<Body>();
    body->buffer = Buffer(memory_.device, static_cast<size_t>(elements_) * SizeOf(dtype_));
    if (memory_.pinned_for != nullptr) body->buffer.PinFor(memory_.pinned_for);
    body->owner = this;
    body->data = body->buffer.f32();
    body->queue = memory_.device.queue.get();
    body->elements = elements_;
    body->dtype = dtype_;
    free_.reserve(all_.size() + 1);
    free_.push_back(body.get());
    all_.push_back(std::move(body));
  }
  BlobBody* body = free_.back();
  free_.pop_back();
  return Blob::First(*body);
}

void BlobPool::Return(BlobBody* body) {
  const std::lock_guard lock(mutex_);
  free_.push_back(body);
}

}  // namespace dtrain
