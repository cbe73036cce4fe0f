#include "framework/exchange/reducer.h"

namespace dtrain {
namespace {

enum Tail { kSamples, kLoss, kStop };
static_assert(kStop + 1 == Reducer::kTailSize);

}  // namespace

void Reducer::Start(Range range, float* gradients) {
  int64_t ticket = -1;
  if (collective_ != nullptr) {
    const int64_t count = range.size() + (IsLast(range) ? kTailSize : 0);
    float* const data = gradients == nullptr ? nullptr : gradients + range.begin;
    ticket = collective_->Start({data, static_cast<size_t>(count)});
  }
  running_.push_back({ticket, range});
}

std::optional<Range> Reducer::Take() {
  if (running_.empty()) return std::nullopt;
  const Reduction oldest = running_.front();
  if (collective_ != nullptr && !collective_->Done(oldest.ticket)) return std::nullopt;
  running_.pop_front();
  return oldest.range;
}

Collective::Traffic Reducer::traffic() const {
  return collective_ == nullptr ? Collective::Traffic{} : collective_->traffic();
}

void Reducer::WriteReport(const StepReport& report, float* tail) {
  tail[kSamples] = static_cast<float>(report.samples);
  tail[kLoss] = static_cast<float>(report.loss_sum);
  tail[kStop] = report.stop ? 1.0f : 0.0f;
}

StepOutcome Reducer::ReadOutcome(const float* tail) {
  return {static_cast<int64_t>(tail[kSamples]), tail[kLoss], tail[kStop] != 0, true};
}

}  // namespace dtrain
