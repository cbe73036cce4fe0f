#include "framework/strategies/driver.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/comm/sum.h"
#include "framework/core/check.h"
#include "framework/solver/clip.h"

namespace dtrain {
namespace {

constexpr int64_t kSliceElements = (1 << 20) / sizeof(float);

bool UsesArrived(VectorId vector) { return vector == kArrived; }

Range SliceOf(Range rest) { return {rest.begin, std::min(rest.end, rest.begin + kSliceElements)}; }

}  // namespace

// An effect that waits for its turn.
struct Driver::Operation {
  enum class Kind { kStartStep, kEndStep, kSend, kTake, kAdd, kBlend, kApply, kClear };

  Kind kind;
  Hosted* host;
  VectorId to = kNoVector;
  VectorId from = kNoVector;
  double factor = 1;
  Update update = {};
  StepOutcome outcome = {};
  ActorId receiver = kService;
  Message message = {};
  Payload payload = {};
  std::optional<Piece> arrived = {};  // what kArrived meant when the effect was asked for

  // While it runs.
  bool begun = false;
  Piece source = {};
  Range rest = {};
  double lr = 0;
  float gradient_scale = 1;
};

struct Driver::Hosted {
  Hosted(ActorId actor_id, std::unique_ptr<Actor> the_actor, int tail, BlobPools* pools)
      : id(actor_id), actor(std::move(the_actor)), vectors(actor->Vectors(), tail, pools) {
    master = vectors.Find(VectorRole::kMaster);
    gradient = vectors.Find(VectorRole::kGradient);
    weights = vectors.Find(VectorRole::kWeights);
    if (weights == kNoVector) weights = master;
  }

  ActorId id;
  std::unique_ptr<Actor> actor;
  ActorVectors vectors;
  VectorId master, gradient, weights;
  std::vector<Buffer> solver_memory;  // a master's, in StateNames() order, of its range
  int64_t samples_applied = 0;
  std::unique_ptr<Port> port;
};

// What an actor sees of the driver.
class Driver::Port : public Effects {
 public:
  Port(Driver& driver, Hosted& host) : driver_(driver), host_(host) {}

  void set_arrived(std::optional<Piece> piece) { arrived_ = std::move(piece); }

  void StartStep() override { Push({.kind = Kind::kStartStep}); }
  void EndStep(const StepOutcome& outcome) override {
    Push({.kind = Kind::kEndStep, .outcome = outcome});
  }
  void Reduce(Range range) override {
    int64_t ticket = -1;
    if (driver_.collective_ != nullptr) {
      const int64_t tail = driver_.IsLast(range) ? kTailSize : 0;
      float* const gradients = driver_.gradients();
      ticket = driver_.collective_->Start({gradients == nullptr ? nullptr : gradients + range.begin,
                                           static_cast<size_t>(range.size() + tail)});
    }
    driver_.reducing_.push_back({ticket, range});
  }
  void Send(ActorId to, Message message, Payload payload) override {
    Push({.kind = Kind::kSend,
          .from = payload.vector,
          .receiver = to,
          .message = std::move(message),
          .payload = payload});
  }
  void SetTimer(int timer, Nanos delay) override {
    driver_.timers_.insert({driver_.clock_->Now() + delay, {host_.id, timer}});
  }
  void Take(VectorId to, VectorId from) override {
    Push({.kind = Kind::kTake, .to = to, .from = from});
  }
  void Add(VectorId to, VectorId from, double factor) override {
    Push({.kind = Kind::kAdd, .to = to, .from = from, .factor = factor});
  }
  void Blend(VectorId to, VectorId from, double share) override {
    Push({.kind = Kind::kBlend, .to = to, .from = from, .factor = share});
  }
  void Apply(const Update& update) override {
    Push({.kind = Kind::kApply, .to = host_.master, .from = update.gradient, .update = update});
  }
  void Clear(VectorId vector) override { Push({.kind = Kind::kClear, .to = vector}); }

 private:
  using Kind = Operation::Kind;

  void Push(Operation operation) {
    operation.host = &host_;
    if (UsesArrived(operation.from)) {
      DT_CHECK(arrived_.has_value())
          << "no vector came with this message; " << host_.actor->Describe();
      operation.arrived = arrived_;
    }
    driver_.operations_.push_back(std::move(operation));
  }

  Driver& driver_;
  Hosted& host_;
  std::optional<Piece> arrived_;
};

Driver::Driver(const ArenaLayout& layout, DriverOptions options, const Seams& seams)
    : layout_(layout),
      options_(std::move(options)),
      learning_rate_(options_.solver, options_.epochs, options_.placement.workers),
      mail_(seams.mail),
      collective_(seams.collective),
      clock_(seams.clock),
      pools_(options_.ghost ? nullptr : seams.pools),
      record_(seams.record) {}

Driver::~Driver() = default;

void Driver::AddActor(ActorId id, std::unique_ptr<Actor> actor) {
  auto host = std::make_unique<Hosted>(id, std::move(actor), kTailSize, pools_);
  host->port = std::make_unique<Port>(*this, *host);
  host->samples_applied = options_.samples_applied;
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

void Driver::Restore(std::span<const float> weights,
                     const std::map<std::string, std::vector<float>>& solver) {
  if (options_.ghost) return;
  DT_CHECK(static_cast<int64_t>(weights.size()) == layout_.size());
  const std::vector<std::string> names = options_.solver.solver->StateNames();
  for (const auto& host : hosted_) {
    for (size_t v = 0; v < host->vectors.specs().size(); ++v) {
      const VectorSpec& spec = host->vectors.specs()[v];
      if (spec.role != VectorRole::kWeights && spec.role != VectorRole::kMaster) continue;
      std::copy_n(weights.begin() + spec.range.begin, spec.range.size(),
                  host->vectors.Overwrite(static_cast<VectorId>(v)));
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
  Note(EventKind::kEnd, host.id);
  host.actor->OnEnd(report, *host.port);
}

// Where the weights are updated elsewhere, the worker clips its own mean gradient.
void Driver::ClipAtWorker(const StepReport& report) {
  Hosted& host = WorkerHost();
  if (options_.solver.clip_norm == 0 || host.master != kNoVector) return;
  float* const gradient = gradients();
  const double share = report.global_samples > 0 ? static_cast<double>(report.samples) /
                                                       static_cast<double>(report.global_samples)
                                                 : 1;
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

void Driver::Note(EventKind kind, ActorId actor, ActorId from) {
  if (record_ != nullptr) record_->Add({kind, actor, from});
}

bool Driver::Progress() {
  bool moved = DeliverLetter();
  moved |= collective_ != nullptr && collective_->Progress();
  moved |= ProgressReductions();
  moved |= FireTimers();
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

bool Driver::FireTimers() {
  if (timers_.empty() || timers_.begin()->first > clock_->Now()) return false;
  const auto [actor, timer] = timers_.begin()->second;
  timers_.erase(timers_.begin());
  Hosted& host = HostedBy(actor);
  Note(EventKind::kTimer, actor);
  host.actor->OnTimer(timer, *host.port);
  return true;
}

void Driver::SendService(Rank to, Message message) {
  Letter letter{.from_rank = options_.rank, .message = std::move(message)};
  if (to == options_.rank) {
    local_.push_back(std::move(letter));
  } else {
    mail_->Send(to, std::move(letter));
  }
}

// ------------------------------------------------------------------ effects

bool Driver::RunSlice() {
  if (operations_.empty()) return false;
  // By reference: what an operation brings about may push others behind it.
  Operation& operation = operations_.front();
  Run(operation);
  if (operation.rest.empty()) operations_.pop_front();
  return true;
}

void Driver::Run(Operation& operation) {
  ActorVectors& vectors = operation.host->vectors;
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::kStartStep:
      if (withheld_) {
        start_pending_ = true;
      } else {
        started_ = true;
        waiting_ = false;
      }
      return;
    case Kind::kEndStep:
      return EndStep(operation.outcome);
    case Kind::kSend:
      return Send(operation);
    case Kind::kClear:
      return vectors.Clear(operation.to);
    case Kind::kTake:
      return Take(operation);
    case Kind::kAdd:
    case Kind::kBlend:
    case Kind::kApply:
      break;
  }
  if (!operation.begun) BeginUpdate(operation);
  Range slice = operation.rest;
  if (!options_.ghost) {
    slice = SliceOf(operation.rest);
    if (operation.kind == Kind::kApply) {
      ApplySlice(operation, slice);
    } else {
      AddSlice(operation, slice);
    }
  }
  Advance(operation, slice);
  if (operation.rest.empty()) EndUpdate(operation);
}

void Driver::Send(Operation& operation) {
  Letter letter{.from = operation.host->id,
                .to = operation.receiver,
                .from_rank = options_.rank,
                .message = std::move(operation.message),
                .finite = finite_};
  if (operation.arrived) {
    letter.piece = operation.arrived;
  } else if (operation.payload.vector != kNoVector) {
    letter.piece = operation.host->vectors.Get(operation.payload.vector, operation.payload.range);
  }
  ++letters_sent_;
  const Rank to = options_.placement.RankOf(operation.receiver);
  if (to == options_.rank) {
    local_.push_back(std::move(letter));
  } else {
    mail_->Send(to, std::move(letter));
  }
}

// By reference where the source covers the whole vector, else copied slice by slice.
void Driver::Take(Operation& operation) {
  ActorVectors& vectors = operation.host->vectors;
  if (!operation.begun) {
    operation.begun = true;
    operation.source = operation.arrived ? *operation.arrived : vectors.Get(operation.from);
    if (!UsesArrived(operation.from)) vectors.Clear(operation.from);
    const Piece& source = operation.source;
    if (source.range == vectors.RangeOf(operation.to) && source.offset == 0) {
      return vectors.Replace(operation.to, std::move(operation.source));
    }
    DT_CHECK(vectors.RangeOf(operation.to).Contains(source.range))
        << operation.host->actor->Describe();
    operation.rest = source.range;
  }
  if (options_.ghost) return Advance(operation, operation.rest);
  const Range slice = SliceOf(operation.rest);
  std::copy_n(operation.source.At(slice.begin), slice.size(),
              vectors.Slice(operation.to, slice).new_values);
  Advance(operation, slice);
}

void Driver::Advance(Operation& operation, Range slice) {
  operation.rest.begin = slice.end;
  bytes_written_ += slice.size() * static_cast<int64_t>(sizeof(float));
}

void Driver::BeginUpdate(Operation& operation) {
  operation.begun = true;
  Hosted& host = *operation.host;
  operation.source = operation.arrived ? *operation.arrived : host.vectors.Get(operation.from);
  operation.rest = operation.source.range;
  if (operation.kind != Operation::Kind::kApply) return;
  if (!operation.update.range.empty()) operation.rest = operation.update.range;
  DT_CHECK(host.master != kNoVector && host.vectors.RangeOf(host.master).Contains(operation.rest))
      << host.actor->Describe();
  operation.lr = learning_rate_.At(static_cast<double>(host.samples_applied) /
                                   static_cast<double>(options_.epoch_samples));
  operation.lr *= operation.update.lr_factor;
  // A worker that updates its own weights clips the reduced gradient; see ClipAtWorker.
  if (options_.solver.clip_norm > 0 && host.gradient != kNoVector && !options_.ghost) {
    DT_CHECK(operation.rest.size() == layout_.size()) << "clipping needs the whole gradient";
    operation.gradient_scale =
        ClipScale(options_.solver.clip_norm, SumOfSquares(gradients(), layout_.size()));
  }
}

void Driver::EndUpdate(Operation& operation) {
  operation.host->samples_applied += operation.update.samples;
}

void Driver::AddSlice(Operation& operation, Range slice) {
  const auto memory = operation.host->vectors.Slice(operation.to, slice);
  const float* const source = operation.source.blob ? operation.source.At(slice.begin) : nullptr;
  const bool blend = operation.kind == Operation::Kind::kBlend;
  if (!blend && operation.factor == 1 && memory.old_values != nullptr && source != nullptr) {
    const float* const terms[] = {memory.old_values, source};
    return SumInOrder(memory.new_values, terms, 2, slice.size());
  }
  const float factor = static_cast<float>(operation.factor);
  const float keep = blend ? static_cast<float>(1 - operation.factor) : 1.0f;
  for (int64_t i = 0; i < slice.size(); ++i) {
    const float old_value = memory.old_values == nullptr ? 0.0f : memory.old_values[i];
    const float added = source == nullptr ? 0.0f : source[i];
    memory.new_values[i] = keep * old_value + factor * added;
  }
}

void Driver::ApplySlice(Operation& operation, Range slice) {
  Hosted& host = *operation.host;
  const Range all = host.vectors.RangeOf(host.master);
  const auto memory = host.vectors.Slice(host.master, slice);
  std::array<float*, 8> state;
  DT_CHECK(host.solver_memory.size() <= state.size());
  for (size_t i = 0; i < host.solver_memory.size(); ++i) {
    state[i] = host.solver_memory[i].f32() + (slice.begin - all.begin);
  }
  UpdateArgs args;
  args.lr = operation.lr;
  args.gradient_scale = operation.gradient_scale;
  args.gradient = operation.source.At(slice.begin);
  args.weights_in = memory.old_values;
  args.weights_out = memory.new_values;
  args.state = {state.data(), host.solver_memory.size()};
  finite_ &= options_.solver.solver->Apply(layout_, slice, args);
}

void Driver::EndStep(const StepOutcome& outcome) {
  Hosted& host = WorkerHost();
  outcome_ = outcome;
  outcome_.finite = outcome.finite && finite_ && std::isfinite(outcome.loss_sum);
  if (host.master != kNoVector) {
    host.vectors.Get(host.master);  // the next version is complete
    host.samples_applied += outcome.samples;
  }
  ended_ = true;
}

// ------------------------------------------------------------------ what others see

bool Driver::Busy() const { return (waiting_ && !start_pending_) || !reducing_.empty() || !Idle(); }

std::vector<Driver::Master> Driver::Masters() {
  std::vector<Master> masters;
  for (const auto& host : hosted_) {
    if (host->master == kNoVector) continue;
    Master master{
        host->id, host->vectors.RangeOf(host->master), host->vectors.Get(host->master).blob, {}};
    for (const Buffer& buffer : host->solver_memory) master.solver_state.push_back(buffer.f32());
    masters.push_back(std::move(master));
  }
  return masters;
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
    for (const Buffer& buffer : host->solver_memory) {
      visitor.Floats("solver", {buffer.f32(), buffer.bytes() / sizeof(float)});
    }
  }
}

}  // namespace dtrain
