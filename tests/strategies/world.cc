#include "tests/strategies/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/core/check.h"
#include "tests/strategies/strategies.h"

namespace dtrain::world {
namespace {

constexpr int64_t kElements = 100;
constexpr int64_t kEventsMax = 500'000;  // timers alone could go on for ever

}  // namespace

class World::Vectors {
 public:
  Vectors(std::vector<VectorSpec> specs, std::vector<Range> shards)
      : specs_(std::move(specs)), shards_(std::move(shards)), values_(specs_.size()) {
    for (size_t v = 0; v < specs_.size(); ++v) {
      const VectorRole role = specs_[v].role;
      if (role != VectorRole::kWeights && role != VectorRole::kMaster) continue;
      for (size_t shard = 0; shard < shards_.size(); ++shard) {
        if (specs_[v].range.Contains(shards_[shard])) values_[v][static_cast<int>(shard)] = {};
      }
    }
  }

  Parts& operator[](VectorId vector) { return vector == kArrived ? arrived : values_.at(vector); }
  Parts Part(VectorId vector, Range range) {
    if (range.empty()) return (*this)[vector];
    Parts part;
    for (const auto& [shard, content] : (*this)[vector]) {
      if (range.Contains(shards_[shard])) part[shard] = content;
    }
    return part;
  }
  VectorId Find(VectorRole role) const {
    for (size_t v = 0; v < specs_.size(); ++v) {
      if (specs_[v].role == role) return static_cast<VectorId>(v);
    }
    return kNoVector;
  }
  int shards() const { return static_cast<int>(shards_.size()); }

  void Take(VectorId to, VectorId from) {
    Parts parts = from == kArrived ? arrived : std::exchange(values_.at(from), {});
    for (auto& [shard, content] : parts) values_.at(to)[shard] = std::move(content);
  }
  void Add(VectorId to, VectorId from, double factor) {
    for (const auto& [shard, content] : (*this)[from]) {
      for (Term term : content.terms) {
        term.factor *= factor;
        values_.at(to)[shard].terms.push_back(term);
      }
    }
  }

  Parts arrived;

 private:
  std::vector<VectorSpec> specs_;
  std::vector<Range> shards_;
  std::vector<Parts> values_;
};

class World::ActorEffects : public Effects {
 public:
  ActorEffects(World& world, ActorId id) : world_(world), id_(id) {}

  void StartStep() override {
    started = true;
    world_.Start(id_);
  }
  void EndStep(const StepOutcome&) override {
    ++world_.ended_;
    world_.rules_->Ended(id_, {id_, world_.begun_[id_]});
    world_.BeginLater(id_);
  }
  void Send(ActorId to, Message message, Payload payload) override {
    Parts parts;
    if (payload.vector != kNoVector) parts = vectors().Part(payload.vector, payload.range);
    world_.Send(id_, to, std::move(message), std::move(parts));
  }
  void SetTimer(int timer, Nanos delay) override {
    world_.Post({.time = world_.now_ + delay, .what = What::kTimer, .actor = id_, .timer = timer});
  }
  Nanos Time() override { return world_.now_; }
  void Take(VectorId to, VectorId from) override { vectors().Take(to, from); }
  void Add(VectorId to, VectorId from, double factor) override { vectors().Add(to, from, factor); }
  // Whole gradients are sent or stay; a protocol cannot tell this from a selection of entries.
  void Compress(VectorId to, VectorId from, double density) override {
    vectors()[to].clear();
    for (auto& [shard, content] : vectors()[from]) {
      std::vector<Term> kept;
      for (const Term& term : content.terms) {
        const bool sent = density >= 1 || world_.Draw(2) == 0;
        (sent ? vectors()[to][shard].terms : kept).push_back(term);
      }
      vectors()[to][shard];
      content.terms = kept;
    }
  }
  void Clear(VectorId vector) override { vectors()[vector].clear(); }
  void Apply(const Update& update) override {
    if (world_.loses_update && world_.loses_update(id_, update)) return;
    for (auto& [shard, master] : vectors()[vectors().Find(VectorRole::kMaster)]) {
      const Content& gradient = vectors()[update.gradient][shard];
      world_.rules_->Applied(id_, shard, gradient, update);
      ++master.version;
      for (const Term& term : gradient.terms) {
        master.mass += term.factor * update.gradient_factor * update.lr_factor;
      }
    }
  }
  void Reduce(VectorId, Range) override { DT_CHECK(false) << "a server protocol reduces"; }
  void Blend(VectorId to, VectorId from, double share) override {
    for (auto& [shard, content] : vectors()[to]) {
      const Content& other = vectors()[from][shard];
      world_.rules_->Blended(id_, other, share);
      ++content.version;
      content.mass = (1 - share) * content.mass + share * other.mass;
    }
  }

  bool started = false;

 private:
  Vectors& vectors() { return *world_.vectors_[id_]; }
  World& world_;
  const ActorId id_;
};

World::World(const Scenario& scenario, const MakeRules& make_rules, uint64_t seed)
    : scenario_(scenario),
      random_(seed, Purpose::kSelfTest, 1),
      reloads_(seed, Purpose::kSelfTest, 2),
      strategy_(MakeStrategy(scenario.strategy)),
      setup_(SetupFor(*strategy_, scenario.workers, kElements, scenario.compress)),
      boundaries_(strategy_->boundaries(setup_.compress)),
      begun_(scenario.workers, 0),
      step_time_(scenario.workers, 0),
      held_(scenario.workers, Held::kNo),
      next_boundary_(NextBoundary()) {
  if (!scenario.node_of.empty()) setup_.placement.node_of = scenario.node_of;
  setup_.may_fail = scenario.may_fail;
  dead_.resize(setup_.placement.actors(), false);
  actors_ = MakeActors(*strategy_, setup_);
  const Placement& placement = setup_.placement;
  std::vector<Range> shards;
  const int count = placement.replicated ? 1 : placement.servers;
  for (int s = 0; s < count; ++s) shards.push_back(placement.ShardOf(s, kElements));
  for (const auto& actor : actors_) {
    vectors_.push_back(std::make_unique<Vectors>(actor->Vectors(), shards));
  }
  rules_ = make_rules(placement);
}

World::~World() = default;

std::string World::Run() {
  for (ActorId worker = 0; worker < scenario_.workers; ++worker) BeginLater(worker);
  for (bool last = false; !last;) {
    Drain();
    if (!rules_->verdict().empty()) return rules_->verdict();
    if (MayStart()) return fmt::format("nothing happens any more after {} steps", started_);
    last = started_ == scenario_.steps;
    NotifyQuiescent(last);
    if (!last) GoOn();
  }
  if (!rules_->verdict().empty()) return rules_->verdict();
  report_ = EmptyReport(*strategy_);
  for (const auto& actor : actors_) actor->Report(report_);
  rules_->Finished(report_);
  return rules_->verdict();
}

std::string World::LastOfHistory() const {
  constexpr size_t kShown = 4000;
  const size_t begin = history_.size() - std::min(history_.size(), kShown);
  return "\n..." + history_.substr(begin);
}

void World::GoOn() {
  next_boundary_ = NextBoundary();
  for (ActorId worker = 0; worker < scenario_.workers; ++worker) {
    const Held held = std::exchange(held_[worker], Held::kNo);
    if (dead_[worker]) continue;
    if (held == Held::kBegin) BeginLater(worker);
    if (held == Held::kStart) Start(worker);
  }
}

// A timer fires even when no other event is left, as long as steps are due, but not at a boundary.
std::optional<World::Event> World::Next() {
  const bool timers = !quiet_ && !timers_.empty() && (MayStart() || !events_.empty());
  Queue* from = &events_;
  if (timers && (events_.empty() || events_.top() > timers_.top())) from = &timers_;
  if (from->empty()) return std::nullopt;
  Event event = from->top();
  from->pop();
  return event;
}

void World::Drain() {
  while (rules_->verdict().empty()) {
    std::optional<Event> event = Next();
    if (!event) return;
    const auto& deaths = scenario_.deaths;
    // Timers are held at a boundary, and nobody dies: the simulator puts off a death until the boundary is left.
    while (!quiet_ && next_death_ < deaths.size() && deaths[next_death_].at <= event->time) {
      Kill(deaths[next_death_++]);
    }
    if (++handled_ > kEventsMax) DT_CHECK(false) << "no end is in sight" << LastOfHistory();
    now_ = std::max(now_, event->time);
    if (reload_ && reloads_.Below(event->sequence, 8) == 0) Reload(event->actor);
    Handle(*event);
    rules_->Settled(event->actor);
  }
}

// Runs between two events of any actor.  The end of a worker's messages is read after the last of them.
void World::Kill(const Death& death) {
  const Placement& placement = setup_.placement;
  for (const ActorId actor : death.actors) {
    if (dead_[actor]) continue;
    dead_[actor] = true;
    rules_->Died(actor);
    history_ += fmt::format("{} {} dies\n", death.at, ActorName(placement, actor));
    if (the_dead_count) actors_[actor]->OnDeath();
    if (!placement.IsWorker(actor) || placement.nodes() == 0) continue;
    const ActorId node = placement.NodeId(placement.node_of[actor]);
    Nanos& arrival = last_arrival_[{actor, node}];
    arrival = std::max(arrival, now_ + Latency());
    Post({.time = arrival, .what = What::kGone, .actor = node, .from = actor});
  }
}

void World::NotifyQuiescent(bool last) {
  quiet_ = true;
  QuiescentState quiescent{
      .samples_applied = ended_,
      .last = last,
      .steps = ended_ / scenario_.workers,
      .epochs = scenario_.epoch_steps > 0 ? ended_ / scenario_.epoch_steps : 0};
  for (ActorId worker = 0; worker < scenario_.workers; ++worker) {
    if (dead_[worker]) quiescent.gone.push_back(worker);
  }
  rules_->Quiescent(quiescent);
  for (ActorId actor = 0; actor < setup_.placement.actors(); ++actor) {
    ActorEffects effects(*this, actor);
    if (!dead_[actor]) actors_[actor]->OnQuiescent(quiescent, effects);
  }
  Drain();
  rules_->AfterBoundary(quiescent);
  quiet_ = false;
}

void World::Handle(Event& event) {
  Actor& actor = *actors_[event.actor];
  ActorEffects effects(*this, event.actor);
  Vectors& vectors = *vectors_[event.actor];
  if (dead_[event.actor]) {
    if (event.what == What::kMessage) actor.OnLostMessage(event.from, event.message);
    return;
  }
  switch (event.what) {
    case What::kBegin:
      actor.OnBegin(effects);
      if (!effects.started) rules_->Waits(event.actor);
      return;
    case What::kEnd: {
      Parts& gradient = vectors[vectors.Find(VectorRole::kGradient)];
      for (int shard = 0; shard < vectors.shards(); ++shard) {
        gradient[shard].terms = {{event.actor, begun_[event.actor]}};
      }
      actor.OnEnd({.samples = 1 + event.actor, .compute = step_time_[event.actor]}, effects);
      return;
    }
    case What::kMessage:
      history_ +=
          fmt::format("{}   {} reads {} from {}\n", now_, ActorName(setup_.placement, event.actor),
                      event.message.kind, ActorName(setup_.placement, event.from));
      rules_->Reached(event.actor, event.from, event.message, event.parts);
      vectors.arrived = std::move(event.parts);
      actor.OnMessage(event.from, event.message, effects);
      return;
    case What::kTimer:
      actor.OnTimer(event.timer, effects);
      return;
    case What::kGone:
      actor.OnGone(event.from, effects);
      return;
  }
}

void World::Post(Event event) {
  event.sequence = sequence_++;
  (event.what == What::kTimer ? timers_ : events_).push(std::move(event));
}

void World::Send(ActorId from, ActorId to, Message message, Parts parts) {
  const Placement& placement = setup_.placement;
  history_ += fmt::format("{} {} > {} {} {}\n", now_, ActorName(placement, from),
                          ActorName(placement, to), message.kind, message.words);
  rules_->Sent(from, to, message, parts);
  if (loses && loses(from, to, message)) return;
  Nanos& arrival = last_arrival_[{from, to}];
  arrival = std::max(arrival, now_ + Latency());
  Post({.time = arrival,
        .what = What::kMessage,
        .actor = to,
        .from = from,
        .message = std::move(message),
        .parts = std::move(parts)});
}

int64_t World::NextBoundary() const {
  int64_t next = scenario_.steps;
  for (const int64_t every :
       {scenario_.boundary_every, boundaries_.every_epochs * scenario_.epoch_steps}) {
    if (every > 0) next = std::min(next, (started_ / every + 1) * every);
  }
  const int64_t once = boundaries_.after_steps * scenario_.workers;
  return once > started_ ? std::min(next, once) : next;
}

bool World::MayStart() const { return started_ < scenario_.steps && started_ < next_boundary_; }

// The trainer requests a step; a step requested before a boundary and not yet admitted stays pending.
void World::BeginLater(ActorId worker) {
  if (!MayStart()) {
    held_[worker] = Held::kBegin;
    return;
  }
  ++begun_[worker];
  Post({.time = now_ + static_cast<Nanos>(Draw(50)), .what = What::kBegin, .actor = worker});
}

void World::Start(ActorId worker) {
  if (!MayStart()) {
    held_[worker] = Held::kStart;
    return;
  }
  ++started_;
  Vectors& vectors = *vectors_[worker];
  rules_->Started(worker, {worker, begun_[worker]}, vectors[vectors.Find(VectorRole::kWeights)]);
  step_time_[worker] = StepTime(worker);
  Post({.time = now_ + step_time_[worker], .what = What::kEnd, .actor = worker});
}

// Each worker keeps its own speed for some time; now and then a step takes ten times as long, or there is a pause.
Nanos World::StepTime(ActorId worker) {
  const int64_t drifts = scenario_.drift_every > 0 ? started_ / scenario_.drift_every : 0;
  const Nanos mean = 500 * (1 + random_.Below(1'000'000 + 1000 * drifts + worker, 4));
  Nanos time = mean / 2 + static_cast<Nanos>(Draw(mean));
  if (Draw(20) == 0) time *= 10;
  if (Draw(50) == 0) time += 20 * mean;
  return time;
}

Nanos World::Latency() {
  const Nanos latency = 10 + static_cast<Nanos>(Draw(400));
  return Draw(20) == 0 ? latency * 20 : latency;
}

void World::Reload(ActorId actor) {
  std::unique_ptr<Actor> fresh = strategy_->MakeActor(actor, setup_);
  LoadState(*fresh, SaveState(*actors_[actor]));
  actors_[actor] = std::move(fresh);
}

}  // namespace dtrain::world
