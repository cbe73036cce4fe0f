#include "framework/nn/device_copies.h"

#include <algorithm>

#include "framework/core/check.h"

namespace dtrain {
namespace {

size_t BytesOf(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

}  // namespace

bool DeviceCopies::InPlace(ConstArena given) const {
  if (given.data == nullptr) return true;
  if (given.queue == nullptr || device_.queue == nullptr) {
    DT_CHECK(given.queue == nullptr) << "of a device, for a net on the CPU";
    return device_.queue == nullptr;
  }
  DT_CHECK(device_.queue->SharesMemoryWith(*given.queue)) << "of another device";
  return true;
}

Arena DeviceCopies::Bring(Buffer& copy, ConstArena given, int64_t elements, bool again) {
  if (InPlace(given)) return {const_cast<float*>(given.data), given.queue};
  if (copy.bytes() < BytesOf(elements)) copy = Buffer(device_, BytesOf(elements));
  if (!again) device_.queue->Upload(copy.data(), given.data, BytesOf(elements));
  return copy.arena();
}

std::span<const Tensor> DeviceCopies::Fields(std::span<const Tensor> host) {
  if (device_.queue == nullptr) return host;
  field_memory_.resize(host.size());
  fields_.assign(host.begin(), host.end());
  for (size_t f = 0; f < host.size(); ++f) {
    const size_t bytes = static_cast<size_t>(host[f].shape.count()) * SizeOf(host[f].dtype);
    Buffer& memory = field_memory_[f];
    if (memory.bytes() < bytes) memory = Buffer(device_, bytes);
    device_.queue->Upload(memory.data(), host[f].data, bytes);
    fields_[f].data = memory.data();
  }
  return fields_;
}

float* DeviceCopies::Gradients(Arena given, int64_t elements) {
  if (InPlace(given)) return given.data;
  if (gradients_.bytes() < BytesOf(elements)) gradients_ = Buffer(device_, BytesOf(elements));
  return gradients_.f32();
}

ReadyEvent DeviceCopies::ReturnGradients(Arena given, Range range) {
  if (InPlace(given)) return device_.Record();
  if (down_ == nullptr) down_ = device_.queue->Another();
  down_->After(*device_.queue);
  down_->Download(given.data + range.begin, gradients_.f32() + range.begin, BytesOf(range.size()));
  return down_->Record();
}

void DeviceCopies::WaitForGradients() const {
  if (down_ != nullptr) down_->Record().Wait();
}

void DeviceCopies::ReturnState(Arena given, int64_t elements) const {
  if (InPlace(given)) return;
  device_.queue->Download(given.data, state_.data(), BytesOf(elements));
}

void DeviceCopies::ReturnSum(double* host, const void* sum) const {
  if (device_.queue == nullptr) {
    *host = *static_cast<const double*>(sum);
  } else {
    device_.queue->Download(host, sum, sizeof(double));
  }
}

}  // namespace dtrain
