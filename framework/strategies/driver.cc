#include "framework/strategies/driver.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/check.h"
#include "framework/solver/clip.h"

namespace dtrain {
namespace {
constexpr int64_t kSliceElements = (1 << 20) / sizeof(float);
}

Driver::Driver(std::unique_ptr<Actor> actor, const ArenaLayout& layout, DriverOptions options,
               Collective* collective)
    : actor_(std::move(actor)),
      layout_(layout),
      options_(std::move(options)),
      learning_rate_(options_.solver, options_.epochs, options_.workers),
      collective_(collective),
      gradients_(static_cast<size_t>(layout.size() + kTailSize) * sizeof(float)),
      pool_(std::make_unique<BlobPool>(layout.size(), DType::kF32)),
      weights_(pool_->New()),
      samples_applied_(options_.samples_applied) {
  for (size_t i = 0; i < options_.solver.solver->StateNames().size(); ++i) {
    state_memory_.emplace_back(static_cast<size_t>(layout.size()) * sizeof(float));
    state_.push_back(state_memory_.back().f32());
  }
  const size_t most = layout.entries.size() + 1;
  reducing_.reserve(most);
  applying_.reserve(most);
}

void Driver::Restore(const std::vector<float>& weights,
                     const std::map<std::string, std::vector<float>>& solver) {
  DT_CHECK(static_cast<int64_t>(weights.size()) == layout_.size());
  std::copy(weights.begin(), weights.end(), weights_.MutableF32());
  const std::vector<std::string> names = options_.solver.solver->StateNames();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto it = solver.find(names[i]);
    if (it != solver.end()) std::copy(it->second.begin(), it->second.end(), state_[i]);
  }
}

void Driver::Begin() {
  started_ = ended_ = false;
  finite_ = true;
  gradient_scale_ = 1;
  lr_ = learning_rate_.At(static_cast<double>(samples_applied_) /
                          static_cast<double>(options_.epoch_samples));
  actor_->OnBegin(*this);
}

void Driver::ReadyLast(Range range, const StepReport& report) {
  float* tail = gradients() + layout_.size();
  tail[kSamples] = static_cast<float>(report.samples);
  tail[kLoss] = static_cast<float>(report.loss_sum);
  tail[kStop] = report.stop ? 1.0f : 0.0f;
  Ready(range);
}

bool Driver::Progress() {
  bool moved = collective_ != nullptr && collective_->Progress();
  moved |= ProgressReductions();
  moved |= ProgressUpdates();
  return moved;
}

bool Driver::ProgressReductions() {
  if (reducing_.empty()) return false;
  const Reduction first = reducing_.front();
  if (collective_ != nullptr && !collective_->Done(first.ticket)) return false;
  reducing_.erase(reducing_.begin());
  if (IsLast(first.range)) ReadTail();
  actor_->OnReduced(first.range, *this);
  return true;
}

bool Driver::ProgressUpdates() {
  if (applying_.empty()) return false;
  Range& rest = applying_.front();
  const Range slice{rest.begin, std::min(rest.end, rest.begin + kSliceElements)};
  UpdateSlice(slice);
  rest.begin = slice.end;
  if (!rest.empty()) return true;
  applying_.erase(applying_.begin());
  const Range whole = applying_whole_;
  if (!applying_.empty()) applying_whole_ = applying_.front();
  actor_->OnApplied(whole, *this);
  return true;
}

void Driver::UpdateSlice(Range slice) {
  if (!next_) next_ = weights_.shared() ? pool_->New() : std::move(weights_);
  const float* current = weights_ ? weights_.f32() : next_.f32();
  std::array<float*, 8> state;
  DT_CHECK(state_.size() <= state.size());
  for (size_t i = 0; i < state_.size(); ++i) state[i] = state_[i] + slice.begin;
  UpdateArgs args;
  args.lr = lr_;
  args.gradient_scale = gradient_scale_;
  args.gradient = gradients() + slice.begin;
  args.weights_in = current + slice.begin;
  args.weights_out = next_.MutableF32() + slice.begin;
  args.state = {state.data(), state_.size()};
  finite_ &= options_.solver.solver->Apply(layout_, slice, args);
}

void Driver::ReadTail() {
  const float* tail = gradients() + layout_.size();
  outcome_.samples = static_cast<int64_t>(tail[kSamples]);
  outcome_.loss_sum = tail[kLoss];
  outcome_.stop = tail[kStop] != 0;
}

void Driver::StartStep() { started_ = true; }

void Driver::Reduce(Range range) {
  int64_t ticket = -1;
  if (collective_ != nullptr) {
    const int64_t tail = IsLast(range) ? kTailSize : 0;
    ticket = collective_->Start({gradients() + range.begin, static_cast<size_t>(range.size() + tail)});
  }
  reducing_.push_back({ticket, range});
}

void Driver::Apply(Range range) {
  if (options_.solver.clip_norm > 0) {
    DT_CHECK(range.size() == layout_.size()) << "clipping needs the whole gradient";
    gradient_scale_ = ClipScale(options_.solver.clip_norm, SumOfSquares(gradients(), layout_.size()));
  }
  if (applying_.empty()) applying_whole_ = range;
  applying_.push_back(range);
}

void Driver::EndStep() {
  weights_ = std::move(next_);
  next_ = Blob();
  outcome_.finite = finite_ && std::isfinite(outcome_.loss_sum);
  samples_applied_ += outcome_.samples;
  ended_ = true;
}

Collective::Traffic Driver::traffic() const {
  return collective_ == nullptr ? Collective::Traffic{} : collective_->traffic();
}

std::string Driver::Describe() const { return actor_->Describe(); }

}  // namespace dtrain
