#include "framework/sim/sim_rank.h"

#include <algorithm>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// Visits the counts `all` of the whole run, which has the strategy's counters.
void VisitReport(StateVisitor& visitor, const std::string& name, ProtocolReport& all) {
  visitor.Int(name + " clock_lead_max", all.clock_lead_max);
  for (StrategyCounts::One& one : all.counts.all()) visitor.Int(name + " " + one.name, one.value);
  visitor.Ints(name + " staleness", all.staleness);
}

// Returns the counts from before the resume.  The list of idle servers is dropped, since it is a
// state and not a count.
ProtocolReport Before(ProtocolReport all, const ProtocolReport& now) {
  all.idle_servers.clear();
  return all.Since(now);
}

ProtocolReport Sum(ProtocolReport now, const ProtocolReport& before) {
  now.Add(before);
  return now;
}

}  // namespace

StepReport SampleCounts(const ExchangeSpec& spec, int worker, int64_t step) {
  const BoundarySchedule& rule = spec.rule;
  const int workers = spec.placement().workers;
  if (!spec.traits().lockstep) {
    const int64_t samples = SplitEvenly({0, rule.batch}, workers, worker).size();
    return {.samples = std::max<int64_t>(samples, 1)};
  }
  const int64_t global = rule.SamplesOf(step + 1) - rule.SamplesOf(step);
  return {.samples = SplitEvenly({0, global}, workers, worker).size(), .global_samples = global};
}

SimRank::SimRank(const SimulationSetup& setup, Rank rank, EventQueue& events,
                 const ComputeModel& compute, RankDependencies dependencies)
    : setup_(setup),
      events_(events),
      compute_(compute),
      parts_(setup.exchange, rank, std::move(dependencies)) {
  worker_.steps = setup.first_step;
  SupposeSamples();
  const bool ended = quiescence().reached() || setup.exchange.start.over;
  if (parts_.driver.HasWorker() && !ended) BeginStep();
  Wake();
}

SimRank::~SimRank() {
  try {
    EndCompute();
  } catch (...) {  // NOLINT(bugprone-empty-catch): this rank ends with another error
  }
}

void SimRank::Wake() {
  if (look_scheduled_) return;
  look_scheduled_ = true;
  events_.At(std::max({events_.now(), busy_until_, stopped_until_}), [this] { Look(); });
}

void SimRank::Stop(Nanos lasts) {
  stopped_until_ = std::max(stopped_until_, events_.now() + lasts);
}

// Does all work that is possible now.  After arithmetic it returns, and is called again when the
// arithmetic is done in virtual time.
void SimRank::Look() {
  look_scheduled_ = false;
  if (stopped_until_ > events_.now()) return Wake();
  Driver& driver = parts_.driver;
  while (!quiescence().reached()) {
    const EffectQueue& effects = driver.effects();
    const int64_t written = effects.done().bytes_written,
                  selected = effects.done().selection_slices;
    const Nanos compressed = effects.done().compression.time;
    const bool progressed = driver.Progress();
    if (!StepMoved() && !Bury() && !progressed) break;
    const int64_t bytes = effects.done().bytes_written - written;
    const Nanos cost = compute_.VectorTime(bytes) + (effects.done().compression.time - compressed);
    if (cost == 0) continue;
    busy_until_ = events_.now() + cost;
    if (RankTimeline* const timeline = parts_.timeline.get()) {
      if (effects.done().selection_slices > selected) {
        timeline->Selected(events_.now(), busy_until_, bytes);
      } else {
        timeline->Arithmetic(events_.now(), busy_until_, bytes);
      }
    }
    return Wake();
  }
  if (quiescence().reached()) return ReportBoundary();
  const Nanos timer = driver.timers().Next();
  if (timer < 0 || timer == timer_scheduled_) return;
  timer_scheduled_ = timer;
  events_.At(std::max(timer, events_.now()), [this] { Wake(); });
}

// Calls on_boundary once for each boundary.
void SimRank::ReportBoundary() {
  if (std::exchange(boundary_reported_, true)) return;
  on_boundary();
}

// Handles the start or the end of the worker's step.  Returns true if there was one.
bool SimRank::StepMoved() {
  if (parts_.driver.TakeStarted()) {
    ComputeStep();
    return true;
  }
  if (parts_.driver.TakeEnded()) {
    FinishStep();
    return true;
  }
  return false;
}

void SimRank::BeginStep() {
  asked_ = events_.now();
  parts_.driver.Begin();
}

void SimRank::ComputeStep() {
  Driver& driver = parts_.driver;
  worker_.wait += events_.now() - asked_;
  started_ = events_.now();
  const int worker = driver.worker();
  report_ = SampleCounts(setup_.exchange, worker, worker_.steps);
  computing_ = setup_.source != nullptr;
  if (computing_) {
    report_.samples =
        setup_.source->Begin(worker, worker_.steps, driver.weights(), driver.gradients());
  }
  parts_.quiescence.StepStarts(report_.samples);
  const StepTiming timing = compute_.Step(worker, worker_.steps, report_.samples);
  worker_.compute += timing.end;
  report_.compute = compute_time_ = timing.end;
  const size_t last = setup_.exchange.layer_gradients.ranges.size() - 1;
  // Without collectives nothing is sent before the end of the step, so only the last gradient is
  // announced.
  for (size_t gradient = setup_.exchange.traits().collectives ? 0 : last; gradient < last;
       ++gradient) {
    events_.After(timing.ready[gradient], [this, gradient] { Announce(gradient); });
  }
  events_.After(timing.end, [this, last] { Announce(last); });
}

void SimRank::EndCompute() {
  if (!std::exchange(computing_, false)) return;
  report_ = setup_.source->End(parts_.driver.worker());
  report_.compute = compute_time_;
}

void SimRank::Announce(size_t gradient) {
  if (stopped_until_ > events_.now() || !unannounced_.empty()) {
    unannounced_.push_back(gradient);
    events_.At(stopped_until_, [this] { AnnounceLate(); });
  } else if (!parts_.driver.died()) {
    AnnounceNow(gradient);
  }
}

// Announces gradients after a stop, in the order in which they became ready.  The stop may have
// been extended meanwhile.
void SimRank::AnnounceLate() {
  if (stopped_until_ > events_.now()) {
    events_.At(stopped_until_, [this] { AnnounceLate(); });
    return;
  }
  for (const size_t gradient : std::exchange(unannounced_, {})) {
    if (!parts_.driver.died()) AnnounceNow(gradient);
  }
}

void SimRank::AnnounceNow(size_t gradient) {
  EndCompute();
  const Range range = setup_.exchange.layer_gradients.ranges[gradient];
  if (parts_.driver.IsLast(range)) {
    computed_ = events_.now();
    parts_.driver.ReadyLast(range, report_);
  } else {
    parts_.driver.Ready(range);
  }
  Wake();
}

void SimRank::FinishStep() {
  ++worker_.steps;
  worker_.samples += report_.samples;
  if (SimulationProgress* const progress = setup_.progress) {
    // Only this thread writes, so no atomic increment is needed.
    progress->steps.store(progress->steps.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    progress->time.store(events_.now(), std::memory_order_relaxed);
  }
  worker_.wait += events_.now() - computed_;
  if (RankTimeline* const timeline = parts_.timeline.get()) {
    timeline->Waited(asked_, started_);
    timeline->Computed(started_, computed_, report_.samples);
    timeline->Exposed(computed_, events_.now());
  }
  if (parts_.driver.worker() == 0) step_times_.push_back(events_.now() - asked_);
  parts_.quiescence.StepEnded();
  if (worker_.steps == last_step_) kill_();
  if (!quiescence().reached() && !parts_.driver.died()) BeginStep();
}

void SimRank::DieBehind(int64_t steps, std::function<void()> kill) {
  last_step_ = steps;
  kill_ = std::move(kill);
}

void SimRank::Die() {
  Driver& driver = parts_.driver;
  if (driver.died()) return;
  if (driver.timers().held()) {
    dies_later_ = true;
    return;
  }
  EndCompute();  // the result is dropped
  if (driver.stage() == StepStage::kRunning) {
    worker_.compute -= compute_time_ - (events_.now() - started_);
  }
  driver.Die();
  worker_.died = events_.now();
  if (driver.HasWorker() && setup_.source != nullptr) setup_.source->Died(driver.worker());
  Wake();
}

// Reports that this rank is dead, after its last messages; true the first time.
bool SimRank::Bury() {
  if (buried_ || !parts_.driver.dead()) return false;
  buried_ = true;
  parts_.quiescence.Died();
  return true;
}

// A step that waits at the boundary keeps the time at which it was begun.
void SimRank::Visit(StateVisitor& visitor) {
  constexpr Nanos kNotYet = -1;
  visitor.Int("steps", worker_.steps);
  visitor.Int("compute", worker_.compute);
  visitor.Int("wait", worker_.wait);
  const bool waits = parts_.driver.stage() != StepStage::kNone;
  Nanos asked = waits ? asked_ : kNotYet;
  visitor.Int("asked", asked);
  if (asked != kNotYet) asked_ = asked;
  parts_.quiescence.VisitProgress(visitor);
  VisitCounts(visitor);
  visitor.Int("samples", worker_.samples);
  visitor.Ints("step_times", step_times_);
  VisitProtocol(visitor);
}

// Saves the totals of the whole run.  After loading, the *_before_ members are set to the loaded
// totals minus the counts of this process.
void SimRank::VisitCounts(StateVisitor& visitor) {
  Collective::Traffic traffic = this->traffic();
  visitor.Int("bytes_sent", traffic.bytes_sent);
  visitor.Int("bytes_received", traffic.bytes_received);
  visitor.Int("messages", traffic.messages);
  visitor.Int("bytes_inside", traffic.bytes_inside);
  CompressionReport compression = this->compression();
  visitor.Int("entries_sent", compression.entries_sent);
  visitor.Int("entries", compression.entries);
  visitor.Int("compressed_bytes", compression.bytes);
  visitor.Int("compress_time", compression.time);
  const Collective::Traffic now = parts_.driver.traffic();
  traffic_before_ = {traffic.bytes_sent - now.bytes_sent,
                     traffic.bytes_received - now.bytes_received, traffic.messages - now.messages,
                     traffic.bytes_inside - now.bytes_inside};
  const CompressionReport compressed = parts_.driver.compression();
  compression_before_ = {compression.entries_sent - compressed.entries_sent,
                         compression.entries - compressed.entries,
                         compression.bytes - compressed.bytes, compression.time - compressed.time};
}

void SimRank::SupposeSamples() {
  worker_.samples = 0;
  for (int64_t step = 0; step < worker_.steps && parts_.driver.HasWorker(); ++step) {
    worker_.samples += SampleCounts(setup_.exchange, parts_.driver.worker(), step).samples;
  }
}

// Does the same as VisitCounts for the counts of protocols.  Saved actors include their own counts.
void SimRank::VisitProtocol(StateVisitor& visitor) {
  ProtocolReport all = protocol(), own = worker_protocol();
  VisitReport(visitor, "protocol", all);
  VisitReport(visitor, "own protocol", own);
  protocol_before_ = Before(std::move(all), parts_.driver.Report());
  worker_protocol_before_ = Before(std::move(own), parts_.driver.WorkerReport());
}

ProtocolReport SimRank::protocol() const { return Sum(parts_.driver.Report(), protocol_before_); }

ProtocolReport SimRank::worker_protocol() const {
  return Sum(parts_.driver.WorkerReport(), worker_protocol_before_);
}

Collective::Traffic SimRank::traffic() const {
  Collective::Traffic all = parts_.driver.traffic();
  all.Add(traffic_before_);
  return all;
}

CompressionReport SimRank::compression() const {
  CompressionReport all = parts_.driver.compression();
  all.Add(compression_before_);
  return all;
}

void SimRank::Leave() {
  boundary_reported_ = look_scheduled_ = false;
  timer_scheduled_ = -1;
  parts_.quiescence.Leave();
  if (std::exchange(dies_later_, false)) Die();
  const Driver& driver = parts_.driver;
  if (driver.HasWorker() && driver.stage() == StepStage::kNone && !driver.died()) BeginStep();
  Wake();
}

}  // namespace dtrain
