#include "framework/sim/sim_rank.h"

#include <algorithm>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {
namespace {
constexpr int64_t kTimelineEvents = 1 << 22;  // of all ranks
}

StepReport SampleCounts(const Strategy& strategy, const Placement& placement, const RestRule& rule,
                        int worker, int64_t step) {
  if (!strategy.synchronous()) {
    const int64_t samples = SplitEvenly({0, rule.batch}, placement.workers, worker).size();
    return {.samples = std::max<int64_t>(samples, 1)};
  }
  const int64_t global = rule.SamplesOf(step + 1) - rule.SamplesOf(step);
  return {.samples = SplitEvenly({0, global}, placement.workers, worker).size(),
          .global_samples = global};
}

SimRank::SimRank(const SimulationSetup& setup, Rank rank, EventQueue& events,
                 const ComputeModel& compute, BlobPools* pools, const Piece& initial,
                 std::unique_ptr<SimMail> mail, std::unique_ptr<Collective> collective)
    : setup_(setup),
      events_(events),
      compute_(compute),
      clock_(events),
      mail_(std::move(mail)),
      collective_(std::move(collective)) {
  if (setup.timeline) {
    timeline_ = std::make_unique<RankTimeline>(kTimelineEvents / setup.placement.ranks());
  }
  driver_ = std::make_unique<Driver>(*setup.layout, setup.Options(setup.placement, rank),
                                     Driver::Seams{.mail = mail_.get(),
                                                   .collective = collective_.get(),
                                                   .clock = &clock_,
                                                   .pools = pools,
                                                   .timeline = timeline_.get()});
  for (const ActorId id : setup.placement.ActorsOf(rank)) {
    driver_->AddActor(id, setup.strategy->MakeActor(id, setup.Actors()));
  }
  driver_->Restore(initial, {});
  rest_ =
      std::make_unique<Rest>(*driver_, Rest::Options{.rule = setup.rule,
                                                     .synchronous = setup.strategy->synchronous(),
                                                     .placement = setup.placement,
                                                     .rank = rank});
  driver_->OnService([this](const Letter& letter) { rest_->OnMessage(letter.message); });
  if (driver_->HasWorker()) BeginStep();
  Wake();
}

void SimRank::Wake() {
  if (look_scheduled_) return;
  look_scheduled_ = true;
  events_.At(std::max(events_.now(), busy_until_), [this] { Look(); });
}

// Moves everything along that can move now; arithmetic ends the look until it is done.
void SimRank::Look() {
  look_scheduled_ = false;
  while (!rest_->reached()) {
    const int64_t written = driver_->bytes_written();
    const bool progressed = driver_->Progress();
    if (!StepMoved() && !progressed) break;
    const Nanos cost = compute_.VectorTime(driver_->bytes_written() - written);
    if (cost == 0) continue;
    busy_until_ = events_.now() + cost;
    if (timeline_) {
      timeline_->Arithmetic(events_.now(), busy_until_, driver_->bytes_written() - written);
    }
    return Wake();
  }
  if (rest_->reached()) return TellRest();
  const Nanos timer = driver_->NextTimer();
  if (timer < 0 || timer == timer_scheduled_) return;
  timer_scheduled_ = timer;
  events_.At(std::max(timer, events_.now()), [this] { Wake(); });
}

// Once for each rest.
void SimRank::TellRest() {
  if (std::exchange(told_rest_, true)) return;
  on_rest();
}

// Follows the worker's step; true when it has come to its next part.
bool SimRank::StepMoved() {
  if (begun_ && !computing_ && driver_->StepStarted()) {
    ComputeStep();
    return true;
  }
  if (computing_ && driver_->StepEnded()) {
    FinishStep();
    return true;
  }
  return false;
}

void SimRank::BeginStep() {
  begun_ = true;
  asked_ = events_.now();
  driver_->Begin();
}

void SimRank::ComputeStep() {
  computing_ = true;
  worker_.wait += events_.now() - asked_;
  started_ = events_.now();
  const int worker = driver_->worker();
  report_ =
      setup_.source == nullptr
          ? SampleCounts(*setup_.strategy, setup_.placement, setup_.rule, worker, worker_.steps)
          : setup_.source->Compute(worker, worker_.steps, driver_->weights(), driver_->gradients());
  rest_->StepStarts(report_.samples);
  const StepTiming timing = compute_.Step(worker, worker_.steps, report_.samples);
  worker_.compute += timing.end;
  report_.compute = timing.end;
  const size_t last = setup_.pieces.ranges.size() - 1;
  // Only a collective has something to do before the end.
  for (size_t piece = setup_.placement.servers > 0 ? last : 0; piece < last; ++piece) {
    events_.After(timing.ready[piece], [this, piece] { Announce(piece); });
  }
  events_.After(timing.end, [this, last] { Announce(last); });
}

void SimRank::Announce(size_t piece) {
  const Range range = setup_.pieces.ranges[piece];
  if (driver_->IsLast(range)) {
    computed_ = events_.now();
    driver_->ReadyLast(range, report_);
  } else {
    driver_->Ready(range);
  }
  Wake();
}

void SimRank::FinishStep() {
  ++worker_.steps;
  worker_.wait += events_.now() - computed_;
  if (timeline_) {
    timeline_->Waited(asked_, started_);
    timeline_->Computed(started_, computed_, report_.samples);
    timeline_->Exposed(computed_, events_.now());
  }
  if (driver_->worker() == 0) step_seconds_.push_back(ToSeconds(events_.now() - asked_));
  begun_ = computing_ = false;
  outcome_ = driver_->outcome();
  rest_->StepEnded(outcome_);
  if (!rest_->reached()) BeginStep();
}

void SimRank::Leave() {
  told_rest_ = false;
  timer_scheduled_ = -1;
  rest_->Leave();
  if (driver_->HasWorker() && !begun_) BeginStep();
  Wake();
}

}  // namespace dtrain
