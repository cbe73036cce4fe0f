// Tests quiescence with messages in flight.  In any order of delivery, actors are called with quiescence, and ranks
// come to a boundary, only when no message is in flight.  The test's protocol has messages that cause other messages,
// and its network delivers in an order drawn from a seed.
#include "framework/exchange/rank_parts.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/seeds.h"

namespace dtrain {
namespace {

constexpr int64_t kStepSamples = 10;
const ArenaLayout kOneNumber{{{"w", {1}, {0, 1}, true}}};

struct Gossip {
  static constexpr int kKind = 1;
  int64_t hops = 0;       // length of the chain of messages that this one may still cause
  int64_t quiescent = 0;  // 1: the chain began at quiescence
  DTRAIN_FIELDS(hops, quiescent)
};

// The test's own counts: messages that actors have sent and that no actor has handled yet.
struct Books {
  explicit Books(uint64_t seed) : draws(seed), work(seed % 2 == 0 ? 0 : 80) {}
  Draws draws;
  const int work;              // vector work queued before messages
  int64_t unread[2] = {0, 0};  // messages not yet handled: caused by steps, by quiescence
  int running = 0;             // steps that run
};

// Starts every step at once, and sends messages when a step begins, when it ends and at quiescence.
class Talker : public Actor {
 public:
  Talker(const Placement& placement, Books& books) : placement_(placement), books_(books) {}

  std::vector<VectorSpec> Vectors() const override {
    return {{"scratch", VectorRole::kPlain, {0, 1}}};
  }
  void OnBegin(Effects& effects) override {
    effects.StartStep();
    Talk({.hops = 1}, effects);
  }
  void OnEnd(const StepReport& report, Effects& effects) override {
    Talk({.hops = 4}, effects);
    effects.EndStep(OutcomeOf(report));
  }
  void OnQuiescent(const QuiescentState&, Effects& effects) override {
    EXPECT_EQ(books_.unread[0], 0) << "messages are on their way";
    EXPECT_EQ(books_.running, 0) << "steps run";
    Talk({.hops = 3, .quiescent = 1}, effects);
  }
  void OnMessage(ActorId, const Message& message, Effects& effects) override {
    const auto heard = Unpack<Gossip>(message);
    --books_.unread[heard.quiescent];
    if (heard.hops > 0) Talk({heard.hops - 1, heard.quiescent}, effects);
  }
  void Visit(StateVisitor&) override {}
  std::string Describe() const override { return "talker"; }

 private:
  // In every other seed some vector work is queued before the message; a rank with such work is not idle.  In the other
  // seeds messages overtake the counting of messages, which work would delay.
  void Talk(const Gossip& gossip, Effects& effects) {
    for (int work = books_.work * books_.draws.Below(2); work > 0; --work) effects.Clear(0);
    for (int envelopes = books_.draws.Below(3); envelopes > 0; --envelopes) {
      ++books_.unread[gossip.quiescent];
      const ActorId to = books_.draws.Below(placement_.actors());
      effects.Send(to, Pack(gossip));
    }
  }

  const Placement placement_;
  Books& books_;
};

// Holds messages until the test delivers one.  The messages of a pair of ranks stay in order.
class HeldChannel : public MessageChannel {
 public:
  HeldChannel(Rank rank, std::vector<HeldChannel*>& all) : rank_(rank), all_(all), held_(8) {}

  void Send(Rank to, Envelope envelope) override {
    holds_ += envelope.message.kind == control::Hold::kKind ? 1 : 0;
    all_[to]->held_[rank_].push_back(std::move(envelope));
  }
  std::optional<Envelope> Next() override { return std::exchange(released_, std::nullopt); }
  bool Busy() const override { return false; }
  Collective::Traffic traffic() const override { return {}; }

  void Release(Rank from) {
    std::deque<Envelope>& envelopes = held_[from];
    if (envelopes.empty() || released_) return;
    released_ = std::move(envelopes.front());
    envelopes.pop_front();
  }

  // Returns how many hold messages this rank has sent since the last call.
  int TakeHolds() { return std::exchange(holds_, 0); }

 private:
  const Rank rank_;
  int holds_ = 0;
  std::vector<HeldChannel*>& all_;
  std::vector<std::deque<Envelope>> held_;  // by sender
  std::optional<Envelope> released_;
};

class Talkers : public Strategy {
 public:
  explicit Talkers(Books& books) : books_(books) {}
  void Configure(config::Reader&) override {}
  StrategyTraits traits() const override { return {}; }
  std::vector<Range> Buckets(const LayerGradients&) const override { return {{0, 1}}; }
  std::unique_ptr<Actor> MakeActor(ActorId, const ActorSetup& setup) const override {
    return std::make_unique<Talker>(setup.placement, books_);
  }

 private:
  Books& books_;
};

class NoClock : public Clock {
 public:
  Nanos Now() const override { return 0; }
};

class World {
 public:
  World(uint64_t seed, const BoundarySchedule& rule) : books_(seed), strategy_(books_) {
    spec_.layout = &kOneNumber;
    spec_.strategy = &strategy_;
    spec_.actors = {{.workers = 2, .servers = 2}, 1, {{0, 1}}};
    spec_.rule = rule;
    spec_.ghost = true;
    for (Rank rank = 0; rank < spec_.placement().ranks(); ++rank) AddRank(rank);
  }

  // Runs until all ranks are at a boundary.
  void RunToBoundary() {
    for (int moves = 0; quiescent_ < spec_.placement().ranks(); ++moves) {
      ASSERT_LT(moves, 50'000) << "no boundary is reached";
      Move(ranks_[books_.draws.Below(std::ssize(ranks_))]);
    }
  }

  void ExpectOneState(int64_t steps_before) {
    for (const Part& part : ranks_) {
      const BoundaryState& state = part.parts->quiescence.state();
      EXPECT_EQ(state.samples_applied, kStepSamples * steps_);
      EXPECT_EQ(state.stop, stop_asked_);
      EXPECT_TRUE(state.finite);
    }
    EXPECT_GE(steps_, steps_before);
    // The leader, server 0, sends one hold message to each worker.
    EXPECT_EQ(channels_[2]->TakeHolds(), 2);
  }

  // Each rank leaves the boundary by itself, in random order.
  void Leave() {
    quiescent_ = 0;
    for (Part& part : ranks_) part.leaves = true;
  }

  bool ended() const { return stop_asked_ || kStepSamples * steps_ >= spec_.rule.last_samples; }
  int64_t steps() const { return steps_; }
  void AskToStop(int64_t in_step) { stop_in_ = in_step; }

 private:
  struct Part {
    std::unique_ptr<RankParts> parts;
    HeldChannel* channel = nullptr;
    bool leaves = false;  // is at a boundary and may leave it
    int64_t pause = 0;    // moves until the trainer has seen the end of its step
  };

  void AddRank(Rank rank) {
    auto channel = std::make_unique<HeldChannel>(rank, channels_);
    channels_.push_back(channel.get());
    Part part;
    part.channel = channel.get();
    part.parts = std::make_unique<RankParts>(
        spec_, rank, RankDependencies{.clock = &clock_, .channel = std::move(channel)});
    ranks_.push_back(std::move(part));
  }

  // Does what an exchange thread does in one pass: it takes over the trainer's calls, looks once at messages and
  // effects, and acts on the state of the step.  At a boundary messages stay in the channel.
  void Move(Part& part) {
    Quiescence& quiescence = part.parts->quiescence;
    Driver& driver = part.parts->driver;
    if (part.leaves && books_.draws.Below(8) == 0) {
      part.leaves = false;
      quiescence.Leave();
    }
    if (quiescence.reached()) return;
    if (driver.HasWorker() && books_.draws.Below(2) == 0 && --part.pause < 0) MoveTrainer(driver);
    if (books_.draws.Below(2) == 0) part.channel->Release(books_.draws.Below(std::ssize(ranks_)));
    driver.Progress();
    if (quiescence.reached()) NoteBoundary();
    if (driver.TakeStarted()) {
      ++books_.running;
      ++steps_;
      quiescence.StepStarts(kStepSamples);
    } else if (driver.TakeEnded()) {
      --books_.running;
      quiescence.StepEnded();
      // Some trainers are so slow that the other ranks are almost at a boundary.
      part.pause = books_.draws.Below(4) == 0 ? books_.draws.Below(200) : 0;
    }
  }

  void NoteBoundary() {
    ++quiescent_;
    EXPECT_EQ(books_.unread[0] + books_.unread[1], 0) << "messages are on their way";
    EXPECT_EQ(books_.running, 0) << "steps run";
  }

  void MoveTrainer(Driver& driver) {
    if (driver.stage() == StepStage::kNone) {
      driver.Begin();
    } else if (driver.stage() == StepStage::kRunning) {
      const bool stop = --stop_in_ == 0;
      stop_asked_ |= stop;
      driver.ReadyLast({0, 1}, {.samples = kStepSamples, .stop = stop});
    }
  }

  const NoClock clock_;
  Books books_;
  const Talkers strategy_;
  ExchangeSpec spec_;
  std::vector<HeldChannel*> channels_;  // the channels of the ranks
  std::vector<Part> ranks_;
  int quiescent_ = 0;
  int64_t steps_ = 0;  // steps started so far
  int64_t stop_in_ = 0;
  bool stop_asked_ = false;
};

// The schedule has a boundary about every 4 steps of 10 samples.
constexpr BoundarySchedule kRule{.epoch_samples = 1000,
                                 .batch = 2 * kStepSamples,
                                 .checkpoint_every_steps = 2,
                                 .last_samples = 12 * kStepSamples};

// A boundary is not reached while a step runs either: a step that a boundary held back starts when the rank leaves it,
// and the message about the next boundary may have arrived already.
TEST(Quiescence, IsReachedOnlyWhenNothingIsOnItsWay) {
  for (const int64_t seed : SeedRange(Seeds())) {
    if (HasFailure()) return;
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, kRule);
    for (int64_t steps = 0; !world.ended(); world.Leave()) {
      world.RunToBoundary();
      if (HasFatalFailure()) return;
      world.ExpectOneState(steps + 1);
      steps = world.steps();
    }
  }
}

TEST(Quiescence, AStopWishBringsItBeforeTheBoundary) {
  BoundarySchedule rule = kRule;
  rule.checkpoint_every_steps = 0;
  rule.last_samples = int64_t{1} << 40;
  for (const int64_t seed : SeedRange(Seeds())) {
    if (HasFailure()) return;
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, rule);
    world.AskToStop(static_cast<int64_t>(seed % 7 + 1));
    world.RunToBoundary();
    if (HasFatalFailure()) return;
    EXPECT_TRUE(world.ended());
    world.ExpectOneState(1);
  }
}

}  // namespace
}  // namespace dtrain
