#include "framework/exchange/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/core/check.h"
#include "framework/exchange/worker_clip.h"

namespace dtrain {

// Port is the driver's interface to one actor.
class Driver::Port : public Effects {
 public:
  Port(Driver& driver, HostedActor& host) : driver_(driver), host_(host) {}

  void set_arrived(std::optional<VectorSlice> slice) { arrived_ = std::move(slice); }

  void StartStep() override {
    PushWork([this] { driver_.StartStep(); });
  }
  void EndStep(const StepOutcome& outcome) override {
    step_outcome_ = outcome;  // one step ends at a time; a larger closure would be allocated
    PushWork([this] { driver_.EndStep(host_, step_outcome_); });
  }
  void Reduce(VectorId vector, Range range) override { driver_.Reduce(host_, vector, range); }
  void Send(ActorId to, Message message, Payload payload) override {
    Push(SendEffect{to, std::move(message), payload});
  }
  void SetTimer(int timer, Nanos delay) override {
    driver_.timers_.Set(driver_.dependencies_.clock->Now() + delay, {host_.id, timer});
  }
  Nanos Time() override { return driver_.EventTime(host_.id); }
  void Take(VectorId to, VectorId from) override { Push(TakeEffect{to, from}); }
  void Add(VectorId to, VectorId from, double factor) override {
    Push(AddEffect{to, from, factor});
  }
  void Blend(VectorId to, VectorId from, double share) override {
    Push(BlendEffect{to, from, share});
  }
  void Apply(const Update& update) override { Push(ApplyEffect{update}); }
  void Clear(VectorId vector) override { Push(ClearEffect{vector}); }
  void Compress(VectorId to, VectorId from, double density) override {
    Push(CompressEffect{to, from, density});
  }

 private:
  void Push(Effect effect) { driver_.effects_.Push(host_, std::move(effect), arrived_); }
  template <class Work>
  void PushWork(Work work) {
    driver_.effects_.Push(host_, WorkEffect{[work] {
                            work();
                            return false;
                          }},
                          std::nullopt);
  }

  Driver& driver_;
  HostedActor& host_;
  std::optional<VectorSlice> arrived_;
  StepOutcome step_outcome_;
};

struct Driver::Host : HostedActor {
  Host(ActorId id, Driver& driver)
      : HostedActor(id, driver.spec_.strategy->MakeActor(id, driver.spec_.actors), driver.spec_,
                    Reducer::kTailSize, driver.dependencies_.pools,
                    driver.dependencies_.worker_residual),
        port(driver, *this) {}
  Port port;
};

Driver::Driver(const ExchangeSpec& spec, Rank rank, const DriverDependencies& dependencies,
               const VectorSlice& weights)
    : spec_(spec),
      rank_(rank),
      dependencies_(dependencies),
      mailbox_(rank, spec.placement().ranks(), dependencies.channel, spec.rank_nodes),
      service_(mailbox_),
      reducer_(dependencies.collective, dependencies.sparse, spec.size(),
               dependencies.all_reduce_times,
               {OnDevice() ? host_tail_ : nullptr, dependencies.reports}),
      effects_(
          spec, *dependencies.ops, dependencies.threads,
          [this](HostedActor& host, SendEffect& effect, std::optional<VectorSlice> slice) {
            Send(host, effect, std::move(slice));
          },
          dependencies.clock) {
  for (const ActorId id : spec.placement().ActorsOf(rank)) {
    hosts_.push_back(std::make_unique<Host>(id, *this));
    hosts_.back()->BeginWith(spec, weights);
    if (!spec.placement().IsWorker(id)) continue;
    DT_CHECK(worker_ == nullptr) << "two workers on rank " << rank;
    worker_ = hosts_.back().get();
  }
  if (spec.start.ranks == nullptr) return;
  const auto saved = spec.start.ranks->find(rank);
  if (saved == spec.start.ranks->end()) return;
  PlayState(saved->second, [this](StateVisitor& visitor) { VisitToGoOn(visitor); });
  for (const auto& host : hosts_) host->TakeFrozen(*spec.layout, weights);
}

Driver::~Driver() = default;

Driver::Host& Driver::HostOf(ActorId id) const {
  for (const auto& host : hosts_) {
    if (host->id == id) return *host;
  }
  DT_CHECK(false) << "actor " << id << " does not live on rank " << rank_;
  return *hosts_[0];
}

ActorId Driver::worker() const { return worker_->id; }
int64_t Driver::samples_applied() const { return worker_->samples_applied; }
const Actor& Driver::actor(ActorId id) const { return *HostOf(id).actor; }

// ------------------------------------------------------------------ the worker's step

void Driver::Begin() {
  // Messages are being counted for a boundary; those of a new step would be in flight at it.
  if (timers_.held()) return;
  // This is a step that was admitted before the checkpoint.
  if (stage_ == StepStage::kAdmitted && !held_) stage_ = StepStage::kStarted;
  if (stage_ != StepStage::kNone) return;
  stage_ = StepStage::kBegun;
  if (worker_->gradient != kNoVector) worker_->vectors.Overwrite(worker_->gradient);
  Note({EventKind::kBegin, worker_->id});
  worker_->actor->OnBegin(worker_->port);
}

void Driver::Ready(Range range) { worker_->actor->OnReady(range, worker_->port); }

void Driver::ReadyLast(Range range, const StepReport& of_step) {
  stage_ = StepStage::kClosing;
  StepReport report = of_step;
  const int64_t samples = worker_->samples_applied;
  if (samples >= boundary_) boundary_ = spec_.rule.NextAfter(samples);
  report.boundary = samples + std::max(report.global_samples, report.samples) >= boundary_;
  worker_->told_of_end = 0;
  if (spec_.ghost) {
    outcome_ = OutcomeOf(report);
    if (report.global_samples > 0) outcome_.samples = report.global_samples;
  } else {
    Reducer::WriteReport(report, Tail());
  }
  if (!spec_.ghost && !OnDevice()) {
    const std::span<float> own(gradients(), static_cast<size_t>(spec_.size()));
    const CompressConfig& compress = spec_.actors.compress;
    ClipBeforeMomentum(compress.clip_norm, spec_.placement().workers, *dependencies_.ops, own);
    if (worker_->master == kNoVector) {
      ClipOwnGradient(spec_.solver.clip_norm, report, *dependencies_.ops, own);
    }
    // A reduction or a compression records the gradient itself.
    if (!spec_.traits().sums_gradients() && !compress.on()) {
      StudyWhole(spec_.statistics, worker_->id, {0, spec_.size()}, spec_.size(), gradients());
    }
  }
  Ready(range);
  Note({EventKind::kEnd, worker_->id, report.compute});
  worker_->actor->OnEnd(report, worker_->port);
}

bool Driver::TakeStarted() {
  if (stage_ != StepStage::kStarted) return false;
  stage_ = StepStage::kRunning;
  return true;
}

bool Driver::TakeEnded() {
  if (stage_ != StepStage::kEnded) return false;
  stage_ = StepStage::kNone;
  return true;
}

Blob Driver::weights() { return worker_->vectors.Get(worker_->weights).blob; }
float* Driver::gradients() {
  return spec_.ghost ? nullptr : worker_->vectors.Data(worker_->gradient);
}

void Driver::Hold(bool held) {
  held_ = held;
  if (!held && stage_ == StepStage::kAdmitted) stage_ = StepStage::kStarted;
}

// ------------------------------------------------------------------ effects

void Driver::StartStep() {
  if (!died_) stage_ = held_ ? StepStage::kAdmitted : StepStage::kStarted;
}

void Driver::EndStep(HostedActor& host, const StepOutcome& outcome) {
  outcome_ = outcome;
  // The driver keeps a loss of this worker alone that is not finite, until the next report tells the others.
  if (outcome.alone) finite_ &= std::isfinite(outcome.loss_sum);
  outcome_.finite = outcome.finite && finite() && std::isfinite(outcome.loss_sum);
  host.samples_applied += outcome.samples;
  if (host.master != kNoVector) host.vectors.Get(host.master);  // the next version is complete
  if (spec_.statistics != nullptr && host.id == spec_.statistics->worker())
    spec_.statistics->EndStep();
  stage_ = StepStage::kEnded;
}

void Driver::Send(HostedActor& host, SendEffect& effect, std::optional<VectorSlice> slice) {
  const Rank to = spec_.placement().RankOf(effect.to);
  if (dependencies_.timeline != nullptr) {
    dependencies_.timeline->Sent(dependencies_.clock->Now(), to, BytesOf(slice));
  }
  mailbox_.Send(to, {.from = host.id,
                     .to = effect.to,
                     .message = std::move(effect.message),
                     .slice = std::move(slice),
                     .finite = finite()});
}

// A gradient that is sent as it is starts at once; everything else waits for the effects before it.
void Driver::Reduce(HostedActor& host, VectorId vector, Range range) {
  reducer_.Ask();
  const bool of_gradient = vector == host.gradient && !range.empty();
  // A simulation of thousands of ranks feels the memory of an object that has nothing to do.
  if (of_gradient && !spec_.actors.compress.on()) {
    StudyWhole(spec_.statistics, host.id, range, spec_.size(), gradients());
    return reducer_.Start(range, gradients());
  }
  if (of_gradient) {
    GradientReduction& reduction = ReductionOf(range);
    if (reduction.Begin()) RunReduction(reduction);
    return;
  }
  effects_.Push(host, WorkEffect{[this, &host, vector, range] {
                  StartSum(host, vector, range);
                  return false;
                }},
                std::nullopt);
}

GradientReduction& Driver::ReductionOf(Range range) {
  const auto known = reductions_.find(range.begin);
  if (known != reductions_.end()) return known->second;
  const std::vector<Range>& buckets = spec_.actors.buckets;
  const auto bucket = std::find(buckets.begin(), buckets.end(), range);
  DT_CHECK(bucket != buckets.end()) << worker_->actor->Describe();
  const ReductionParts parts{.spec = spec_,
                             .host = *worker_,
                             .ops = *dependencies_.ops,
                             .reducer = reducer_,
                             .done = effects_.done(),
                             .clock = dependencies_.clock,
                             .finite = [this] { return finite(); },
                             .rounds = rounds_,
                             .resume = [this](GradientReduction& next) { RunReduction(next); }};
  return reductions_
      .try_emplace(range.begin, parts, range, static_cast<int>(bucket - buckets.begin()))
      .first->second;
}

// Does the work of a reduction in its turn, and tells the worker when it was the last.
void Driver::RunReduction(GradientReduction& reduction) {
  effects_.Push(*worker_, WorkEffect{[this, &reduction] {
    if (reduction.RunSlice()) return true;
    if (reduction.over()) TellReduced(reduction.range());
    return false;
  }},
                std::nullopt);
}

// Starts the all-reduce of a vector other than the gradient, or of the report alone.
void Driver::StartSum(HostedActor& host, VectorId vector, Range range) {
  if (vector != host.gradient) {
    float* const data =
        spec_.ghost ? nullptr : host.vectors.SliceWithValues(vector, range, *dependencies_.ops);
    return reducer_.StartVector(vector, range, data);
  }
  if (!spec_.ghost && !finite()) Reducer::WriteNotFinite(Tail());
  reducer_.Start(range, gradients());
}

// ------------------------------------------------------------------ events

void Driver::Note(const Event& event) {
  if (dependencies_.record != nullptr) dependencies_.record->Add(event);
}

// The record has the time after the event that it belongs to.
Nanos Driver::EventTime(ActorId actor) {
  const Nanos time = dependencies_.event_times == nullptr ? dependencies_.clock->Now() + time_ahead_
                                                          : dependencies_.event_times->Next();
  Note({EventKind::kTime, actor, time});
  return time;
}

bool Driver::Progress() {
  bool moved = DeliverEnvelope();
  moved |= reducer_.Progress();
  moved |= TakeReduced();
  moved |= FireDueTimer();
  moved |= effects_.RunSlice();
  return moved;
}

bool Driver::DeliverEnvelope() {
  const std::optional<Envelope> envelope = mailbox_.Next();
  if (!envelope) return false;
  if (envelope->to == kService) {
    service_.Deliver(*envelope);
    return true;
  }
  if (died_) {
    HostOf(envelope->to).actor->OnLostMessage(envelope->from, envelope->message);
    return true;
  }
  if (dependencies_.timeline != nullptr) {
    dependencies_.timeline->Read(dependencies_.clock->Now(), envelope->from_rank,
                                 BytesOf(envelope->slice));
  }
  finite_ &= envelope->finite;
  Host& host = HostOf(envelope->to);
  Note({EventKind::kMessage, envelope->to, envelope->from});
  if (&host != worker_) host.told_of_end = 0;
  if (envelope->message.kind == kGoneMessage) {
    host.actor->OnGone(envelope->from, host.port);
    return true;
  }
  host.port.set_arrived(envelope->slice);
  host.actor->OnMessage(envelope->from, envelope->message, host.port);
  host.port.set_arrived(std::nullopt);
  return true;
}

bool Driver::TakeReduced() {
  const std::optional<Reduced> reduced = reducer_.Take();
  if (!reduced) return false;
  const Range range = reduced->range;
  if (reduced->vector != kNoVector) {
    worker_->actor->OnReduced(reduced->vector, range, worker_->port);
  } else if (range.empty() || !spec_.actors.compress.on()) {
    TellReduced(range);
  } else if (GradientReduction& reduction = ReductionOf(range); reduction.Summed(*reduced)) {
    RunReduction(reduction);
  } else {
    TellReduced(range);
  }
  return true;
}

void Driver::TellReduced(Range range) {
  // The sum of the workers' step reports.
  const auto outcome = [&] { return spec_.ghost ? outcome_ : Reducer::ReadOutcome(Tail()); };
  if (IsLast(range)) worker_->actor->OnOutcome(outcome(), worker_->port);
  worker_->actor->OnReduced(worker_->gradient, range, worker_->port);
}

bool Driver::FireDueTimer() {
  if (timers_.Next() < 0) return false;  // avoids reading the clock
  const auto timer = timers_.TakeDue(dependencies_.clock->Now());
  if (timer) Fire(*timer);
  return timer.has_value();
}

bool Driver::FireTimer(int number) {
  const auto timer = timers_.TakeNumber(number);
  if (timer) Fire(*timer);
  return timer.has_value();
}

void Driver::Fire(const TimerTable::Timer& timer) {
  Host& host = HostOf(timer.actor);
  Note({EventKind::kTimer, timer.actor, timer.number});
  host.actor->OnTimer(timer.number, host.port);
}

void Driver::Die() {
  died_ = true;
  timers_.SetAll({}, 0);
  if (stage_ < StepStage::kClosing) stage_ = StepStage::kNone;
  for (const auto& host : hosts_) host->actor->OnDeath();
}

void Driver::TellNode() {
  const Placement& placement = spec_.placement();
  const std::optional<ActorId> node = placement.NodeActorOf(worker_->id);
  if (!node) return;
  mailbox_.Send(placement.RankOf(*node), {.from = worker_->id,
                                          .to = *node,
                                          .message = Pack(control::Gone{worker_->id}),
                                          .finite = finite()});
}

void Driver::NotifyQuiescent(const QuiescentState& quiescent) {
  if (died_) return;
  QuiescentState in_steps = quiescent;
  in_steps.gone = gone_;
  in_steps.steps = spec_.rule.StepsOf(quiescent.samples_applied);
  in_steps.epochs = quiescent.samples_applied / spec_.rule.epoch_samples;
  for (const auto& host : hosts_) {
    // The actors of a run that is resumed at its end flushed their accumulators before it was
    // saved.
    if (quiescent.last && std::exchange(host->told_of_end, 1) != 0) continue;
    Note({EventKind::kQuiet, host->id, quiescent.samples_applied, quiescent.last});
    host->actor->OnQuiescent(in_steps, host->port);
  }
}

// ------------------------------------------------------------------ state and reports

bool Driver::Busy() const {
  return stage_ == StepStage::kBegun || reducer_.busy() || !effects_.empty() || mailbox_.Busy();
}

std::vector<Driver::Master> Driver::Masters() {
  std::vector<Master> masters;
  for (const auto& host : hosts_) {
    if (host->master == kNoVector) continue;
    Master master{
        host->id,      host->vectors.RangeOf(host->master), host->vectors.Get(host->master).blob,
        host->updates, host->actor->MasterShare(),          {}};
    for (const Buffer& buffer : host->solver_memory) master.solver_state.push_back(buffer.f32());
    masters.push_back(std::move(master));
  }
  return masters;
}

Collective::Traffic Driver::traffic() const {
  Collective::Traffic total = mailbox_.traffic();
  total.Add(reducer_.traffic());
  return total;
}

ProtocolReport Driver::Report() const {
  const ProtocolReport none{.counts = StrategyCounts(spec_.strategy->counters())};
  ProtocolReport total = none;
  for (const auto& host : hosts_) {
    ProtocolReport report = none;
    host->actor->Report(report);
    total.Add(report);
  }
  return total;
}

ProtocolReport Driver::WorkerReport() const {
  ProtocolReport report{.counts = StrategyCounts(spec_.strategy->counters())};
  if (worker_ != nullptr) worker_->actor->Report(report);
  return report;
}

std::string Driver::Describe() const {
  std::string lines;
  for (const auto& host : hosts_) lines += (lines.empty() ? "" : "; ") + host->actor->Describe();
  return lines;
}

std::string Driver::Holds() const {
  std::string all;
  for (const auto& host : hosts_) {
    const std::string held = host->actor->Holds();
    if (held.empty()) continue;
    all += fmt::format("{}{} has {}", all.empty() ? "" : "; ", spec_.placement().NameOf(host->id),
                       held);
  }
  return all;
}

void Driver::VisitToGoOn(StateVisitor& visitor) {
  Visit(visitor);
  visitor.Owner("driver");
  if (dependencies_.sparse != nullptr) dependencies_.sparse->Visit(visitor);
  DT_CHECK(!Stepping()) << Describe();
  int64_t stage = static_cast<int64_t>(stage_);
  visitor.Int("stage", stage);
  stage_ = static_cast<StepStage>(stage);
  for (const auto& host : hosts_) visitor.Int("told_of_end", host->told_of_end);
  const Nanos now = dependencies_.clock->Now();
  std::vector<int64_t> timers = timers_.Left(now);
  visitor.Ints("timers", timers);
  timers_.SetAll(timers, now);
  int64_t time = now + time_ahead_;
  visitor.Int("time", time);
  time_ahead_ = time - now;
}

void Driver::Visit(StateVisitor& visitor) {
  DT_CHECK(effects_.empty() && !reducer_.busy() && !mailbox_.Busy()) << Describe();
  for (const auto& host : hosts_) {
    visitor.Owner(spec_.placement().NameOf(host->id));
    host->Visit(visitor, spec_.actors.compress.on());
  }
  if (spec_.actors.compress.coder() == nullptr || worker_ == nullptr) return;
  for (const Range& bucket : spec_.actors.buckets) ReductionOf(bucket).Visit(visitor);
}

}  // namespace dtrain
