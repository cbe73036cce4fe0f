#include "framework/exchange/inline_exchange.h"

#include "framework/core/check.h"

namespace dtrain {
namespace {

BlobMemory HomeOf(const ExchangeSpec& spec, const Device& device) {
  const bool stays =
      spec.traits().sums_gradients() && !spec.actors.compress.on() && spec.statistics == nullptr;
  return stays ? BlobMemory{.device = device} : BlobMemory{.pinned_for = device.queue};
}

// On a device an update is one kernel call, not one for each bucket.
ExchangeSpec SpecFor(ExchangeSpec spec, const Device& device) {
  spec.actors.whole_update |= HomeOf(spec, device).device.queue != nullptr;
  return spec;
}

LossScale FirstScale(const ExchangeSpec& spec, const Device& device) {
  if (device.precision != Precision::kFp16) return {};
  // A run that is resumed from one with another precision has no scale yet.
  return spec.start.loss_scale == LossScale() ? LossScale::First() : spec.start.loss_scale;
}

}  // namespace

InlineExchange::InlineExchange(const ExchangeSpec& spec, Transport& transport, int threads,
                               const Device& device)
    : transport_(transport),
      spec_(SpecFor(spec, device)),
      pools_(HomeOf(spec, device)),
      steps_(pools_.device().queue == nullptr
                 ? nullptr
                 : std::make_unique<StepGraph>(pools_.device(), true, FirstScale(spec, device))),
      parts_(spec_, 0, Dependencies(device, threads)) {}

RankDependencies InlineExchange::Dependencies(const Device& device, int threads) {
  RankDependencies dependencies =
      DependenciesOver(transport_, spec_, clock_, pools_, device, threads);
  dependencies.steps = steps_.get();
  return dependencies;
}

Turn InlineExchange::Begin(int64_t samples) {
  Driver& driver = parts_.driver;
  Quiescence& quiescence = parts_.quiescence;
  if (!quiescence.reached()) driver.Begin();
  while (!quiescence.reached() && !driver.TakeStarted()) {
    DT_CHECK(driver.Progress()) << "nothing can move: " << driver.Describe();
  }
  if (quiescence.reached()) return {.boundary = true, .state = quiescence.state()};
  quiescence.StepStarts(samples);
  if (steps_ != nullptr) steps_->Begin();
  return {.weights = driver.weights()};
}

void InlineExchange::Ready(Range range, const ReadyEvent& /*written*/) {
  if (parts_.driver.IsLast(range)) {
    last_ = range;
  } else {
    parts_.driver.Ready(range);
  }
}

// No update begins before End.  The trainer has dropped its reference to the weights by then, so
// the update happens in place.
StepOutcome InlineExchange::End(const StepReport& report) {
  Driver& driver = parts_.driver;
  driver.ReadyLast(last_, report);
  while (driver.Progress()) {
  }
  if (steps_ != nullptr) {
    steps_->Launch();
    const bool waits = !report.lags || report.stop || parts_.quiescence.IsDue() || steps_->Full();
    results_ = waits ? steps_->Wait() : std::span<const StepResults>();
    for (const StepResults& of : results_) {
      if (of.non_finite.step != NonFinitePlace::kNone) driver.NoteNotFinite();
    }
  }
  DT_CHECK(driver.TakeEnded()) << driver.Describe();
  parts_.quiescence.StepEnded();
  return driver.outcome();
}

void InlineExchange::Leave() {
  parts_.model.Drop();
  parts_.quiescence.Leave();
}

}  // namespace dtrain
