#include "framework/device/step_graph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace dtrain {
namespace {

std::map<DeviceKind, StepKernels>& Registered() {
  static std::map<DeviceKind, StepKernels> registered;
  return registered;
}

const StepKernels& KernelsOf(const Device& device) {
  const auto it = Registered().find(device.kind);
  DT_CHECK(it != Registered().end()) << NameOf(device.kind) << " has no kernels of a step";
  return it->second;
}

}  // namespace

bool AddStepKernels(DeviceKind device, const StepKernels& kernels) {
  return Registered().emplace(device, kernels).second;
}

StepGraph::StepGraph(const Device& device, bool captures, const LossScale& scale)
    : device_(device),
      captures_(captures),
      values_on_host_(device.queue, kSteps * kValueBytes),
      results_on_host_(device.queue, kSteps * sizeof(StepResults)),
      values_(device, kValueBytes),
      state_(device, sizeof(StepState)),
      scale_(scale) {
  const StepState start{.scale = scale};
  std::memcpy(values_on_host_.data(), &start, sizeof start);
  device_.queue->Upload(state_.data(), values_on_host_.data(), sizeof start);
  device_.Record().Wait();
}

void StepGraph::Begin() {
  DT_CHECK(!Full()) << "the results of " << kSteps << " steps have not been read";
  key_.clear();
  parts_.clear();
  sums_.clear();
  value_bytes_ = 0;
  scaled_ = nullptr;
}

std::byte* StepGraph::SlotOf(uint64_t step) const {
  return static_cast<std::byte*>(values_on_host_.data()) + step % kSteps * kValueBytes;
}

void* StepGraph::Put(const void* value, size_t bytes) {
  const size_t at = (value_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  DT_CHECK(at + bytes <= kValueBytes) << "the values of a step take more than " << kValueBytes;
  std::memcpy(SlotOf(launched_) + at, value, bytes);
  value_bytes_ = at + bytes;
  return static_cast<std::byte*>(values_.data()) + at;
}

void StepGraph::Add(std::span<const void* const> key, std::function<void()> submit) {
  key_.push_back(AsKey(std::ssize(key)));
  key_.insert(key_.end(), key.begin(), key.end());
  parts_.push_back(std::move(submit));
}

void StepGraph::Sum(const double* sum) {
  DT_CHECK(sums_.size() < StepResults::kSums);
  sums_.push_back(sum);
}

void StepGraph::ScaleLoss(const float* loss_scale) {
  DT_CHECK(scaled_ == nullptr) << "a step has one loss scale";
  scaled_ = loss_scale;
}

void StepGraph::UnscaleGradients(float* gradients, int64_t count) {
  KernelsOf(device_).unscale(device_, state(), gradients, count);
}

void StepGraph::Submit() {
  const StepKernels& kernels = KernelsOf(device_);
  if (value_bytes_ > 0) {
    kernels.begin(device_, state(), static_cast<const std::byte*>(values_on_host_.data()),
                  static_cast<std::byte*>(values_.data()), value_bytes_, scaled_);
  }
  for (const auto& submit : parts_) submit();
  kernels.end(device_, sums_, static_cast<StepResults*>(results_on_host_.data()), state());
}

void StepGraph::Launch() {
  if (captures_) {
    key_.insert(key_.end(), sums_.begin(), sums_.end());
    key_.push_back(AsKey(static_cast<int64_t>(value_bytes_)));
    key_.push_back(scaled_);
    key_.push_back(AsKey(device_.queue->memory_version()));
    LaunchCaptured();
  } else {
    Submit();
  }
  ++launched_;
}

void StepGraph::LaunchCaptured() {
  const auto it = std::ranges::find(known_, key_, &Known::key);
  if (it == known_.end()) {
    if (known_.size() == kGraphs) known_.erase(known_.begin());
    known_.push_back({key_, nullptr});
    return Submit();
  }
  std::rotate(it, it + 1, known_.end());
  Known& known = known_.back();
  if (known.graph == nullptr && !known.refused) {
    try {
      known.graph = device_.queue->Capture([this] { Submit(); });
    } catch (const Error& error) {
      // The run goes on, slower: a library may use calls that cannot be captured.
      known.refused = true;
      log::Warning("a step is not captured as a graph: {}", error.what());
    }
  }
  if (known.graph == nullptr) return Submit();
  known.graph->Launch();
}

std::span<const StepResults> StepGraph::Wait() {
  results_.clear();
  if (waiting() == 0) return {};
  device_.Record().Wait();
  const auto* const ring = static_cast<const StepResults*>(results_on_host_.data());
  for (; told_ < launched_; ++told_) results_.push_back(ring[told_ % kSteps]);
  scale_ = results_.back().scale;
  return results_;
}

}  // namespace dtrain
