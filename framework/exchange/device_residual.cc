#include "framework/exchange/device_residual.h"

#include <algorithm>

namespace dtrain {
namespace {

Device WithAnotherQueue(Device device) {
  device.queue = device.queue->Another();
  return device;
}

}  // namespace

bool DeviceResidual::Serves(const ExchangeSpec& spec, const Device& device) {
  const CompressConfig& compress = spec.actors.compress;
  return device.queue != nullptr && compress.sends_entries() && compress.clip_norm == 0 &&
         spec.statistics == nullptr && spec.traits().collectives;
}

std::unique_ptr<DeviceResidual> DeviceResidual::For(const ExchangeSpec& spec, const Device& device,
                                                    const Device& there) {
  return Serves(spec, device) ? std::make_unique<DeviceResidual>(spec, device, there) : nullptr;
}

DeviceResidual::DeviceResidual(const ExchangeSpec& spec, const Device& device, const Device& there)
    : momentum_(static_cast<float>(spec.actors.compress.momentum)),
      size_(spec.size()),
      net_queue_(device.queue.get()),
      there_(there.queue != nullptr),
      device_(there_ ? there : WithAnotherQueue(device)),
      values_(MakeDeviceValues(device_)) {
  const size_t bytes = static_cast<size_t>(size_) * sizeof(float);
  gradient_ = Buffer(device_, bytes);
  residual_ = Buffer(device_, bytes);
  if (momentum_ > 0) velocity_ = Buffer(device_, bytes);
  device_.Record().Wait();  // the zeroed memory is visible to the net's queue
}

void DeviceResidual::Add(Range range) {
  const float* added = gradient_.f32() + range.begin;
  if (momentum_ > 0) {
    float* const velocity = velocity_.f32() + range.begin;
    values_->Accelerate(velocity, momentum_, added, range.size());
    added = velocity;
  }
  values_->Add(residual_.f32() + range.begin, added, range.size());
}

void DeviceResidual::TakeAll(Range range, float* to) {
  Add(range);
  float* const from = residual_.f32() + range.begin;
  if (there_) {
    values_->Copy(to, from, range.size());
  } else {
    device_.queue->Download(to, from, static_cast<size_t>(range.size()) * sizeof(float));
  }
  values_->Zero(from, range.size());
  // Others read a device's memory, too (comm/peer_collective.h).
  device_.Record().Wait();
}

void DeviceResidual::SetToEntries(float* to, int64_t n, int64_t first,
                                  std::span<const SparseView> parts) {
  values_->Zero(to, n);
  for (const SparseView& part : parts) {
    const auto count = static_cast<size_t>(part.count);
    values_->AddAt(to - first, {{part.positions, count}, {part.values, count}});
  }
  device_.Record().Wait();
}

DeviceValues& DeviceResidual::ValuesOf(Range unit) {
  values_->Begin(residual_.f32() + unit.begin, unit.size());
  return *values_;
}

void DeviceResidual::TakeOut(Range unit, std::span<const int32_t> places, float* to, bool mask) {
  float* const masked = mask ? velocity_.f32() + unit.begin : nullptr;
  const std::span<const float> taken =
      values_->TakeOut(residual_.f32() + unit.begin, masked, places);
  std::copy(taken.begin(), taken.end(), to);
}

void DeviceResidual::Mask(int64_t first, std::span<const int32_t> positions) {
  values_->TakeOut(velocity_.f32() + first, nullptr, positions);
}

void DeviceResidual::PutBack(int64_t first, const SparseView& entries) {
  const auto count = static_cast<size_t>(entries.count);
  values_->AddAt(residual_.f32() + first, {{entries.positions, count}, {entries.values, count}});
}

void DeviceResidual::Bring(ActorVectors& vectors) const {
  const auto bring = [&](VectorRole role, const Buffer& from) {
    const VectorId to = vectors.Find(role);
    if (to == kNoVector || from.data() == nullptr) return;
    CopyArena(vectors.ArenaAt(vectors.Overwrite(to)), from.arena(), size_);
  };
  bring(VectorRole::kResidual, residual_);
  bring(VectorRole::kVelocity, velocity_);
}

void DeviceResidual::TakeFrom(ActorVectors& vectors) {
  const auto take = [&](VectorRole role, Buffer& to) {
    const VectorId from = vectors.Find(role);
    if (from == kNoVector || to.data() == nullptr) return;
    if (vectors.Empty(from)) {
      values_->Zero(to.f32(), size_);
      device_.Record().Wait();
    } else {
      CopyArena(to.arena(), vectors.Get(from).blob.arena(), size_);
    }
    vectors.Clear(from);
  };
  take(VectorRole::kResidual, residual_);
  take(VectorRole::kVelocity, velocity_);
}

}  // namespace dtrain
