#include "framework/exchange/driver.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/exchange/driver_parts.h"
#include "framework/solver/clip.h"

namespace dtrain {
namespace {

// The part of a batch's mean gradient that is this worker's.
double ShareOf(const StepReport& report) {
  const bool by_terms = report.global_terms > 0;
  const int64_t all = by_terms ? report.global_terms : report.global_samples;
  if (all == 0) return 1;
  return static_cast<double>(by_terms ? report.terms : report.samples) / static_cast<double>(all);
}

}  // namespace

Driver::Driver(const ArenaLayout& layout, DriverOptions options, const Seams& seams)
    : layout_(layout),
      options_(std::move(options)),
      learning_rate_(options_.solver, options_.epochs, options_.placement.workers),
      mail_(seams.mail),
      collective_(seams.collective),
      clock_(seams.clock),
      pools_(options_.ghost ? nullptr : seams.pools),
      timeline_(seams.timeline),
      record_(seams.record) {}

Driver::~Driver() = default;

Driver::Hosted::~Hosted() = default;

void Driver::AddActor(ActorId id, std::unique_ptr<Actor> actor) {
  auto host = std::make_unique<Hosted>(id, std::move(actor), kTailSize, pools_);
  host->port = std::make_unique<Port>(*this, *host);
  host->samples_applied = options_.samples_applied;
  host->updates = options_.updates;
  if (host->master != kNoVector && !options_.ghost) {
    const int64_t size = host->vectors.RangeOf(host->master).size();
    for (size_t i = 0; i < options_.solver.solver->StateNames().size(); ++i) {
      host->solver_memory.emplace_back(static_cast<size_t>(size) * sizeof(float));
    }
  }
  if (options_.placement.IsWorker(id)) {
    DT_CHECK(worker_ < 0) << "two workers on rank " << options_.rank;
    worker_ = static_cast<int>(hosted_.size());
  }
  hosted_.push_back(std::move(host));
}

Driver::Hosted& Driver::HostedBy(ActorId id) const {
  for (const auto& host : hosted_) {
    if (host->id == id) return *host;
  }
  DT_CHECK(false) << "actor " << id << " does not live on rank " << options_.rank;
  return *hosted_[0];
}

Driver::Hosted& Driver::WorkerHost() const { return *hosted_[worker_]; }

ActorId Driver::worker() const { return WorkerHost().id; }

const Actor& Driver::actor(ActorId id) const { return *HostedBy(id).actor; }

void Driver::Restore(const Piece& weights,
                     const std::map<std::string, std::vector<float>>& solver) {
  if (options_.ghost) return;
  DT_CHECK(weights.range == (Range{0, layout_.size()}));
  const std::vector<std::string> names = options_.solver.solver->StateNames();
  for (const auto& host : hosted_) {
    for (size_t v = 0; v < host->vectors.specs().size(); ++v) {
      const VectorSpec& spec = host->vectors.specs()[v];
      if (spec.role != VectorRole::kWeights && spec.role != VectorRole::kMaster) continue;
      const VectorId vector = static_cast<VectorId>(v);
      if (spec.range == weights.range) {
        host->vectors.Replace(vector, weights);
      } else {
        std::copy_n(weights.At(spec.range.begin), spec.range.size(),
                    host->vectors.Overwrite(vector));
      }
    }
    for (size_t i = 0; i < host->solver_memory.size(); ++i) {
      const auto it = solver.find(names[i]);
      if (it == solver.end()) continue;
      const Range range = host->vectors.RangeOf(host->master);
      std::copy_n(it->second.begin() + range.begin, range.size(), host->solver_memory[i].f32());
    }
  }
}

// ------------------------------------------------------------------ the worker's step

void Driver::Begin() {
  if (!ended_) return;  // begun before a rest
  started_ = ended_ = false;
  waiting_ = true;
  Hosted& host = WorkerHost();
  if (host.gradient != kNoVector) host.vectors.Overwrite(host.gradient);
  Note(EventKind::kBegin, host.id);
  host.actor->OnBegin(*host.port);
}

void Driver::Ready(Range range) {
  Hosted& host = WorkerHost();
  host.actor->OnReady(range, *host.port);
}

void Driver::ReadyLast(Range range, const StepReport& report) {
  if (!options_.ghost) {
    float* const tail = gradients() + layout_.size();
    tail[kSamples] = static_cast<float>(report.samples);
    tail[kLoss] = static_cast<float>(report.loss_sum);
    tail[kStop] = report.stop ? 1.0f : 0.0f;
    ClipAtWorker(report);
  } else {
    outcome_ = OutcomeOf(report);
    if (report.global_samples > 0) outcome_.samples = report.global_samples;
  }
  Ready(range);
  Hosted& host = WorkerHost();
  Note(EventKind::kEnd, host.id, report.compute);
  host.actor->OnEnd(report, *host.port);
}

// Where the weights are updated elsewhere, the worker clips its own mean gradient.
void Driver::ClipAtWorker(const StepReport& report) {
  Hosted& host = WorkerHost();
  if (options_.solver.clip_norm == 0 || host.master != kNoVector) return;
  float* const gradient = gradients();
  const double share = ShareOf(report);
  if (share == 0) return;
  const float scale = ClipScale(options_.solver.clip_norm,
                                SumOfSquares(gradient, layout_.size()) / (share * share));
  if (scale == 1) return;
  for (int64_t i = 0; i < layout_.size(); ++i) gradient[i] *= scale;
}

StepOutcome Driver::ReadTail() const {
  Hosted& host = WorkerHost();
  if (options_.ghost) return outcome_;
  const float* tail = host.vectors.Data(host.gradient) + layout_.size();
  return {static_cast<int64_t>(tail[kSamples]), tail[kLoss], tail[kStop] != 0, true};
}

Blob Driver::weights() {
  Hosted& host = WorkerHost();
  return host.vectors.Get(host.weights).blob;
}

float* Driver::gradients() {
  if (options_.ghost) return nullptr;
  Hosted& host = WorkerHost();
  return host.vectors.Data(host.gradient);
}

void Driver::Withhold(bool withheld) {
  withheld_ = withheld;
  if (withheld || !start_pending_) return;
  start_pending_ = waiting_ = false;
  started_ = true;
}

// ------------------------------------------------------------------ events

void Driver::Note(EventKind kind, ActorId actor, int64_t value) {
  if (record_ != nullptr) record_->Add({kind, actor, value});
}

bool Driver::Progress() {
  bool moved = DeliverLetter();
  moved |= collective_ != nullptr && collective_->Progress();
  moved |= ProgressReductions();
  moved |= FireDueTimer();
  moved |= RunSlice();
  return moved;
}

bool Driver::DeliverLetter() {
  std::optional<Letter> letter;
  if (!local_.empty()) {
    letter = std::move(local_.front());
    local_.pop_front();
  } else if (mail_ != nullptr) {
    letter = mail_->Next();
  }
  if (!letter) return false;
  Deliver(*letter);
  return true;
}

void Driver::Deliver(const Letter& letter) {
  if (letter.to == kService) {
    DT_CHECK(service_ != nullptr) << "nobody takes service letters on rank " << options_.rank;
    service_(letter);
    return;
  }
  ++letters_received_;
  if (timeline_ != nullptr) {
    timeline_->Read(clock_->Now(), letter.from_rank, letter.piece ? letter.piece->bytes() : 0);
  }
  finite_ &= letter.finite;
  Hosted& host = HostedBy(letter.to);
  Note(EventKind::kMessage, letter.to, letter.from);
  host.port->set_arrived(letter.piece);
  host.actor->OnMessage(letter.from, letter.message, *host.port);
  host.port->set_arrived(std::nullopt);
}

bool Driver::ProgressReductions() {
  if (reducing_.empty()) return false;
  const Reduction first = reducing_.front();
  if (collective_ != nullptr && !collective_->Done(first.ticket)) return false;
  reducing_.pop_front();
  Hosted& host = WorkerHost();
  if (IsLast(first.range)) host.actor->OnOutcome(ReadTail(), *host.port);
  host.actor->OnReduced(first.range, *host.port);
  return true;
}

bool Driver::FireDueTimer() {
  if (timers_held_ || timers_.empty() || timers_.begin()->first > clock_->Now()) return false;
  Fire(timers_.begin());
  return true;
}

bool Driver::FireTimer(int timer) {
  const auto it = std::find_if(timers_.begin(), timers_.end(),
                               [timer](const auto& set) { return set.second.second == timer; });
  if (it == timers_.end()) return false;
  Fire(it);
  return true;
}

void Driver::Fire(Timers::iterator it) {
  const auto [actor, timer] = it->second;
  timers_.erase(it);
  Hosted& host = HostedBy(actor);
  Note(EventKind::kTimer, actor, timer);
  host.actor->OnTimer(timer, *host.port);
}

void Driver::TellQuiet(const Quiet& quiet) {
  for (const auto& host : hosted_) {
    Note(EventKind::kQuiet, host->id, 2 * quiet.samples_applied + (quiet.last ? 1 : 0));
    host->actor->OnQuiet(quiet, *host->port);
  }
}

void Driver::SendService(Rank to, Message message) {
  Letter letter{.from_rank = options_.rank, .message = std::move(message)};
  if (to == options_.rank) {
    local_.push_back(std::move(letter));
  } else {
    mail_->Send(to, std::move(letter));
  }
}

// ------------------------------------------------------------------ what others see

bool Driver::Busy() const { return (waiting_ && !start_pending_) || !reducing_.empty() || !Idle(); }

std::vector<Driver::Master> Driver::Masters() {
  std::vector<Master> masters;
  for (const auto& host : hosted_) {
    if (host->master == kNoVector) continue;
    Master master{host->id,
                  host->vectors.RangeOf(host->master),
                  host->vectors.Get(host->master).blob,
                  host->updates,
                  {}};
    for (const Buffer& buffer : host->solver_memory) master.solver_state.push_back(buffer.f32());
    masters.push_back(std::move(master));
  }
  return masters;
}

void Driver::CopyMasters(float* arena) {
  for (const Master& master : Masters()) {
    std::copy_n(master.weights.f32(), master.range.size(), arena + master.range.begin);
  }
}

Collective::Traffic Driver::traffic() const {
  Collective::Traffic total = mail_ == nullptr ? Collective::Traffic{} : mail_->traffic();
  if (collective_ == nullptr) return total;
  const Collective::Traffic reduced = collective_->traffic();
  total.bytes_sent += reduced.bytes_sent;
  total.bytes_received += reduced.bytes_received;
  total.messages += reduced.messages;
  return total;
}

ProtocolReport Driver::Report() const {
  ProtocolReport total;
  for (const auto& host : hosted_) {
    ProtocolReport report;
    host->actor->Report(report);
    total.Add(report);
  }
  return total;
}

std::string Driver::Describe() const {
  std::string lines;
  for (const auto& host : hosted_) lines += (lines.empty() ? "" : "; ") + host->actor->Describe();
  return lines;
}

// At rest: there are no operations, reductions or letters.
void Driver::Visit(StateVisitor& visitor) {
  DT_CHECK(Idle() && reducing_.empty()) << Describe();
  for (const auto& host : hosted_) {
    host->actor->Visit(visitor);
    host->vectors.Visit(visitor);
    visitor.Int("samples_applied", host->samples_applied);
    visitor.Int("updates", host->updates);
    for (const Buffer& buffer : host->solver_memory) {
      visitor.Floats("solver", {buffer.f32(), buffer.bytes() / sizeof(float)});
    }
  }
}

}  // namespace dtrain
