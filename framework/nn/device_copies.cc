#include "framework/nn/device_copies.h"

#include <algorithm>

namespace dtrain {
namespace {

size_t BytesOf(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

}  // namespace

float* DeviceCopies::Bring(Buffer& copy, const float* host, int64_t elements) {
  if (device_.queue == nullptr || host == nullptr) return const_cast<float*>(host);
  if (copy.bytes() < BytesOf(elements)) copy = Buffer(device_, BytesOf(elements));
  device_.queue->Upload(copy.data(), host, BytesOf(elements));
  return copy.f32();
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

float* DeviceCopies::Gradients(float* host, int64_t elements) {
  if (device_.queue == nullptr) return host;
  if (gradients_.bytes() < BytesOf(elements)) gradients_ = Buffer(device_, BytesOf(elements));
  return gradients_.f32();
}

void DeviceCopies::ReturnGradients(float* host, Range range) const {
  if (device_.queue == nullptr) return;
  device_.queue->Download(host + range.begin, gradients_.f32() + range.begin,
                          BytesOf(range.size()));
}

void DeviceCopies::ReturnState(float* host, int64_t elements) const {
  if (device_.queue == nullptr || host == nullptr) return;
  device_.queue->Download(host, state_.data(), BytesOf(elements));
}

void DeviceCopies::ReturnSum(double* host, const void* sum) const {
  if (device_.queue == nullptr) {
    *host = *static_cast<const double*>(sum);
  } else {
    device_.queue->Download(host, sum, sizeof(double));
  }
}

}  // namespace dtrain
