// Tests what actors may do at quiescence and what timers may not do, with a protocol made for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "framework/strategies/strategy.h"
#include "tests/exchange/exchange_fixture.h"

namespace dtrain {
namespace {

struct Word {
  static constexpr int kKind = 1;
  int64_t last = 0;
  DTRAIN_FIELDS(last)
};

// Starts every step at once.  Each step sets a timer that fires after the step's end; at quiescence the worker sends a
// message to the server.
class QuiescentTalker : public Actor {
 public:
  explicit QuiescentTalker(const ActorSetup& setup) : setup_(setup) {}
  std::vector<VectorSpec> Vectors() const override {
    return {{"gradient", VectorRole::kGradient, {0, setup_.size}},
            {"weights", VectorRole::kWeights, {0, setup_.size}}};
  }
  void OnBegin(Effects& effects) override {
    effects.SetTimer(7, 2'000'000);
    effects.StartStep();
  }
  void OnEnd(const StepReport& report, Effects& effects) override {
    effects.EndStep(OutcomeOf(report));
  }
  void OnTimer(int timer, Effects& effects) override {
    EXPECT_EQ(timer, 7);
    effects.Send(setup_.placement.ServerId(0), Pack(Word{.last = -1}));
  }
  void OnQuiescent(const QuiescentState& quiescent, Effects& effects) override {
    effects.Send(setup_.placement.ServerId(0), Pack(Word{.last = quiescent.last}));
  }
  void Visit(StateVisitor&) override {}
  std::string Describe() const override { return "talker"; }

 private:
  const ActorSetup setup_;
};

class Listener : public Actor {
 public:
  Listener(const ActorSetup& setup, std::vector<int64_t>* heard) : setup_(setup), heard_(heard) {}
  std::vector<VectorSpec> Vectors() const override {
    return {{"master", VectorRole::kMaster, {0, setup_.size}}};
  }
  void OnMessage(ActorId, const Message& message, Effects&) override {
    heard_->push_back(Unpack<Word>(message).last);
  }
  void Visit(StateVisitor&) override {}
  std::string Describe() const override { return "listener"; }

 private:
  const ActorSetup setup_;
  std::vector<int64_t>* const heard_;  // used by the server's exchange thread only
};

class Chatter : public Strategy {
 public:
  void Configure(config::Reader&) override {}
  StrategyTraits traits() const override { return {}; }
  Placement Place(int workers) const override { return {.workers = workers, .servers = 1}; }
  std::vector<Range> Buckets(const LayerGradients& slices) const override {
    return {{0, slices.total()}};
  }
  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const override {
    if (setup.placement.IsWorker(id)) return std::make_unique<QuiescentTalker>(setup);
    return std::make_unique<Listener>(setup, &heard);
  }
  mutable std::vector<int64_t> heard;
};

// A step takes a millisecond, so that there are several boundaries.
Turn StepToBoundary(Exchange& exchange) {
  for (;;) {
    Turn turn = exchange.Begin(10);
    if (turn.boundary) return turn;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    exchange.Ready({0, kLayout.size()});
    exchange.End({.samples = 10});
  }
}

// Checks that each of three workers has sent one message at each boundary, and the last message at the end.
void ExpectHeard(const std::vector<int64_t>& heard, int boundaries, bool last) {
  EXPECT_EQ(std::count_if(heard.begin(), heard.end(), [](int64_t word) { return word >= 0; }),
            3 * boundaries);
  EXPECT_EQ(std::count(heard.begin(), heard.end(), 1), last ? 3 : 0);
}

TEST(QuiescentState, MessagesOfActorsArriveBeforeTheBoundary) {
  const Chatter strategy;
  const Placement placement{3, 1, false};
  LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
    RankInputs inputs(strategy, placement, 0, 1000);
    inputs.spec.rule.checkpoint_every_steps = 20;  // a boundary about every 200 samples
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int boundaries = 1;; ++boundaries) {
      const Turn boundary = StepToBoundary(exchange);
      const bool last = boundary.state.samples_applied >= 1000;
      if (transport.rank() == 3) ExpectHeard(strategy.heard, boundaries, last);
      const size_t heard = transport.rank() == 3 ? strategy.heard.size() : 0;
      // Waits longer than the longest timer.
      exchange.AtBoundary([](Transport& all) { all.Barrier(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      exchange.AtBoundary([](Transport& all) { all.Barrier(); });
      if (transport.rank() == 3) {
        EXPECT_EQ(strategy.heard.size(), heard);
      }
      if (last) break;
      exchange.Leave();
    }
  });
  // Timers fired while steps ran.
  EXPECT_GT(std::count(strategy.heard.begin(), strategy.heard.end(), -1), 0);
}

}  // namespace
}  // namespace dtrain
