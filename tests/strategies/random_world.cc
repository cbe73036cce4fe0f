#include "tests/strategies/random_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/strategies/effect_writer.h"
#include "tests/strategies/strategies.h"

namespace dtrain {

class RandomWorld::ActorEffects : public Effects {
 public:
  ActorEffects(RandomWorld& world, ActorId id) : world_(world), id_(id) {}

  void StartStep() override {
    world_.oracle_.Started(id_, vectors()[vectors().Find(VectorRole::kWeights)]);
    world_.Post(world_.now_ + world_.StepTime(id_), What::kEnd, id_);
  }
  void EndStep(const StepOutcome& outcome) override {
    world_.oracle_.Ended(id_, outcome);
    world_.BeginLater(id_);
  }
  void Send(ActorId to, Message message, Payload payload) override {
    Parts parts;
    if (payload.vector != kNoVector) parts = vectors().Part(payload.vector, payload.range);
    world_.Send(id_, to, std::move(message), std::move(parts));
  }
  void Take(VectorId to, VectorId from) override { vectors().Take(to, from); }
  void Add(VectorId to, VectorId from, double factor) override {
    DT_CHECK(factor == 1);
    vectors().Add(to, from);
  }
  void Clear(VectorId vector) override { vectors().Clear(vector); }
  void Compress(VectorId to, VectorId from, double) override {
    vectors().Compress(to, from, [this](const Gradient&) { return world_.Picks(); });
    world_.Spoil(vectors()[from], vectors()[to]);
  }
  void Apply(const Update& update) override {
    if (world_.Loses(update)) return;
    const int server = world_.setup_.placement.ServerOf(id_);
    Content& master = vectors()[vectors().Find(VectorRole::kMaster)][server];
    world_.oracle_.Applied(server, master, vectors()[update.gradient][server], update);
  }
  void Reduce(VectorId, Range) override { DT_CHECK(false) << "a server protocol reduces"; }
  Nanos Time() override { return world_.now_; }
  void SetTimer(int, Nanos) override { DT_CHECK(false) << "nothing is timed"; }
  void Blend(VectorId, VectorId, double) override { DT_CHECK(false) << "nothing is blended"; }

 private:
  SymbolicVectors& vectors() { return world_.vectors_[id_]; }

  RandomWorld& world_;
  const ActorId id_;
};

namespace {

constexpr int64_t kElements = 100;

}  // namespace

RandomWorld::RandomWorld(const Scenario& scenario, uint64_t seed)
    : scenario_(scenario),
      random_(seed, Purpose::kSelfTest, 1),
      reloads_(seed, Purpose::kSelfTest, 2),
      picks_(seed, Purpose::kSelfTest, 3),
      strategy_(MakeStrategy(scenario.strategy)),
      setup_(SetupFor(*strategy_, scenario.workers, kElements, scenario.compress)),
      actors_(MakeActors(*strategy_, setup_)),
      oracle_(scenario, setup_.placement),
      begun_(scenario.workers, 0) {
  std::vector<Range> shards;
  for (int s = 0; s < setup_.placement.servers; ++s) {
    shards.push_back(setup_.placement.ShardOf(s, kElements));
  }
  const Content initial{std::vector<int64_t>(scenario.workers, 0)};
  for (const auto& actor : actors_) vectors_.emplace_back(actor->Vectors(), shards, initial);
}

std::string RandomWorld::Run() {
  for (ActorId worker = 0; worker < scenario_.workers; ++worker) BeginLater(worker);
  while (!events_.empty() && oracle_.verdict().empty()) {
    Event event = events_.top();
    events_.pop();
    now_ = event.time;
    if (reload_ && reloads_.Below(event.sequence, 8) == 0) Reload(event.actor);
    Handle(event);
  }
  if (!oracle_.verdict().empty()) return oracle_.verdict();
  ProtocolReport report = EmptyReport(*strategy_);
  for (const auto& actor : actors_) actor->Report(report);
  oracle_.Finished(report, vectors_);
  return oracle_.verdict();
}

void RandomWorld::Handle(Event& event) {
  Actor& actor = *actors_[event.actor];
  ActorEffects effects(*this, event.actor);
  const Placement& placement = setup_.placement;
  if (event.what == What::kBegin) {
    actor.OnBegin(effects);
  } else if (event.what == What::kEnd) {
    oracle_.Pushed(event.actor);
    const Gradient step{event.actor, begun_[event.actor]};
    SymbolicVectors& vectors = vectors_[event.actor];
    Parts& gradient = vectors[vectors.Find(VectorRole::kGradient)];
    for (int shard = 0; shard < placement.servers; ++shard) gradient[shard] = {{}, {step}, {step}};
    actor.OnEnd(Oracle::ReportOf(step), effects);
  } else {
    vectors_[event.actor].Arrive(std::move(event.parts));
    const bool at_server = !placement.IsWorker(event.actor);
    const int server = placement.ServerOf(event.actor);
    if (at_server) oracle_.Reached(server, event.from, event.message);
    actor.OnMessage(event.from, event.message, effects);
    if (at_server) oracle_.Settled(server);
  }
}

void RandomWorld::Post(Nanos time, What what, ActorId actor, ActorId from, Message message,
                       Parts parts) {
  events_.push({time, sequence_++, what, actor, from, std::move(message), std::move(parts)});
}

void RandomWorld::Send(ActorId from, ActorId to, Message message, Parts parts) {
  const Placement& placement = setup_.placement;
  history_ += fmt::format("{} {} > {} {}\n", now_, ActorName(placement, from),
                          ActorName(placement, to), MessageText(placement, message));
  if (Loses(from, to, message)) return;
  if (message.kind == ps::Weights::kKind) {
    oracle_.Answered(placement.ServerOf(from), to, Unpack<ps::Weights>(message));
  }
  Nanos& arrival = last_arrival_[{from, to}];
  arrival = std::max(arrival, now_ + Latency());
  Post(arrival, What::kMessage, to, from, std::move(message), std::move(parts));
}

void RandomWorld::BeginLater(ActorId worker) {
  if (begun_[worker] == scenario_.steps && scenario_.steps_in_all == 0) return;
  if (all_begun_ == scenario_.steps_in_all && all_begun_ > 0) return;
  ++begun_[worker];
  ++all_begun_;
  Post(now_ + static_cast<Nanos>(Draw(50)), What::kBegin, worker);
}

// Each worker has its own speed; now and then a step takes ten times as long, or there is a pause.
Nanos RandomWorld::StepTime(ActorId worker) {
  const Nanos mean = 500 * (1 + random_.Below(1'000'000 + worker, 4));
  Nanos time = mean / 2 + static_cast<Nanos>(Draw(mean));
  if (Draw(20) == 0) time *= 10;
  if (Draw(50) == 0) time += 20 * mean;
  return time;
}

Nanos RandomWorld::Latency() {
  const Nanos latency = 10 + static_cast<Nanos>(Draw(400));
  return Draw(20) == 0 ? latency * 20 : latency;
}

void RandomWorld::Reload(ActorId actor) {
  std::unique_ptr<Actor> fresh = strategy_->MakeActor(actor, setup_);
  LoadState(*fresh, SaveState(*actors_[actor]));
  actors_[actor] = std::move(fresh);
}

}  // namespace dtrain
