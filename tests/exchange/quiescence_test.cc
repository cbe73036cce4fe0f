// Quiescence with messages in flight: whatever order messages come in, actors hear that all is quiescent, and
// ranks come to a boundary, only when nothing is on its way.  A protocol made for it, in which a message
// brings about others, and a network that delivers in any order that the seed wants.
#include "framework/exchange/rank_parts.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/seeds.h"

namespace dtrain {
namespace {

constexpr int kSeeds = 1000;
constexpr int64_t kStepSamples = 10;
const ArenaLayout kOneNumber{{{"w", {1}, {0, 1}, true}}};

struct Gossip {
  static constexpr int kKind = 1;
  int64_t hops = 0;       // messages that this one may still bring about, one behind the other
  int64_t quiescent = 0;  // 1: began when all was quiet
  DTRAIN_FIELDS(hops, quiescent)
};

// What the test counts itself: messages that actors have asked for and that nobody has read yet.
struct Books {
  explicit Books(uint64_t seed) : draws(seed), work(seed % 2 == 0 ? 0 : 80) {}
  Draws draws;
  const int work;              // on vectors, before messages
  int64_t unread[2] = {0, 0};  // of steps, of a quiescent time
  int running = 0;             // steps
};

// Starts every step at once, and talks when it begins, at its end and when all is quiescent.
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
  // In every other seed behind some work on vectors: who has that before it is not idle.  The other
  // seeds have messages that overtake the counting, which work would hold up.
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

// Messages wait until the test lets one through: in order from one rank to another.
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

  // That this rank has sent since the last call.
  int TakeHolds() { return std::exchange(holds_, 0); }

 private:
  const Rank rank_;
  int holds_ = 0;
  std::vector<HeldChannel*>& all_;
  std::vector<std::deque<Envelope>> held_;  // by sending rank
  std::optional<Envelope> released_;
};

class Talkers : public Strategy {
 public:
  explicit Talkers(Books& books) : books_(books) {}
  void Configure(config::Reader&) override {}
  bool synchronous() const override { return false; }
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

  // Until all ranks are at a boundary.
  void RunToBoundary() {
    for (int moves = 0; resting_ < spec_.placement().ranks(); ++moves) {
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
    // The leader, server 0, tells each worker once.
    EXPECT_EQ(mails_[2]->TakeHolds(), 2);
  }

  // Each rank leaves by itself, sooner or later.
  void Leave() {
    resting_ = 0;
    for (Part& part : ranks_) part.leaves = true;
  }

  bool ended() const { return stop_asked_ || kStepSamples * steps_ >= spec_.rule.last_samples; }
  int64_t steps() const { return steps_; }
  void AskToStop(int64_t in_step) { stop_in_ = in_step; }

 private:
  struct Part {
    std::unique_ptr<RankParts> parts;
    HeldChannel* channel = nullptr;
    bool leaves = false;  // is at a boundary, and may go on
    int64_t pause = 0;    // moves until the trainer has seen the end of its step
  };

  void AddRank(Rank rank) {
    auto channel = std::make_unique<HeldChannel>(rank, mails_);
    mails_.push_back(channel.get());
    Part part;
    part.channel = channel.get();
    part.parts = std::make_unique<RankParts>(
        spec_, rank, RankDependencies{.clock = &clock_, .channel = std::move(channel)});
    ranks_.push_back(std::move(part));
  }

  // As an exchange thread does it: what the trainer has done, then one look at messages and
  // effects, then what that means for the step.  At a boundary messages wait.
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
      // Some trainers are so slow that the others are all but at a boundary.
      part.pause = books_.draws.Below(4) == 0 ? books_.draws.Below(200) : 0;
    }
  }

  void NoteBoundary() {
    ++resting_;
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
  std::vector<HeldChannel*> mails_;  // the ranks' own
  std::vector<Part> ranks_;
  int resting_ = 0;
  int64_t steps_ = 0;  // started
  int64_t stop_in_ = 0;
  bool stop_asked_ = false;
};

// A boundary about every 4 steps of 10 samples.
constexpr BoundarySchedule kRule{.epoch_samples = 1000,
                                 .batch = 2 * kStepSamples,
                                 .checkpoint_every_steps = 2,
                                 .last_samples = 12 * kStepSamples};

// Nor while a step runs: one that a boundary had held back starts when that is left, and word of the
// next boundary may be there already.
TEST(Quiescence, IsReachedOnlyWhenNothingIsOnItsWay) {
  for (uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
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
  for (uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
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
