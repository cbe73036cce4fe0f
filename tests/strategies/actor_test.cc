// Tests what the actors refuse, and their state in checkpoints.
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/strategies/ps/messages.h"
#include "tests/strategies/effect_writer.h"
#include "tests/strategies/strategies.h"
#include "tests/support/message_of.h"

namespace dtrain::ps {
namespace {

// The actors of one strategy; their effects are dropped.
class Actors {
 public:
  explicit Actors(const std::string& section, int workers = 2)
      : strategy_(MakeStrategy(section)),
        setup_(SetupFor(*strategy_, workers, 10)),
        actors_(MakeActors(*strategy_, setup_)) {}

  Actor& worker() { return *actors_[0]; }
  Actor& server() { return *actors_[setup_.placement.ServerId(0)]; }
  template <class M>
  void Reach(Actor& actor, ActorId from, const M& message) {
    EffectWriter effects = Effects(actor);
    actor.OnMessage(from, Pack(message), effects);
  }
  EffectWriter Effects(const Actor& actor) {
    return EffectWriter(setup_.placement, 0, actor, text_, [](ActorId, const Message&) {});
  }
  const std::string& text() const { return text_; }

 private:
  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::string text_;
};

TEST(PsServerDeathTest, APushComesOnceAndInOrder) {
  for (const char* section : {"{name: ps_bsp}", "{name: ps_ssp}", "{name: ps_asp}"}) {
    Actors actors(section);
    EXPECT_DEATH(actors.Reach(actors.server(), 0, Push{.clock = 2}), "worker 0 pushes step 2; ps_");
    actors.Reach(actors.server(), 0, Push{.clock = 1});
    EXPECT_DEATH(actors.Reach(actors.server(), 0, Push{.clock = 1}), "worker 0 pushes step 1; ps_");
  }
}

TEST(PsServerDeathTest, APushIsOfWeightsThatWereSent) {
  Actors ssp("{name: ps_ssp}"), bsp("{name: ps_bsp}");
  EXPECT_DEATH(ssp.Reach(ssp.server(), 0, Push{.clock = 1, .version = 1}),
               "worker 0 has version 1 of 0");
  EXPECT_DEATH(bsp.Reach(bsp.server(), 0, Push{.clock = 1, .version = 1}),
               "worker 0 pushes step 1");
}

TEST(PsServerDeathTest, APullIsOfTheCurrentClock) {
  Actors actors("{name: ps_asp}");
  EXPECT_DEATH(actors.Reach(actors.server(), 1, Pull{3}),
               "worker 1 pulls at clock 3; ps_asp server");
}

TEST(PsWorkerDeathTest, AnswersComeOnceAndWhenAsked) {
  Actors actors("{name: ps_ssp}");
  EXPECT_DEATH(actors.Reach(actors.worker(), 2, Weights{}),
               "server 0 answers unasked; ps_ssp worker");
}

TEST(PsWorkerDeathTest, AStepEndsOnce) {
  Actors actors("{name: ps_ssp}");
  EffectWriter effects = actors.Effects(actors.worker());
  EXPECT_DEATH(actors.worker().OnEnd({}, effects), "ps_ssp worker 0: clock 0, idle");
  actors.worker().OnBegin(effects);
  actors.worker().OnEnd({}, effects);
  EXPECT_DEATH(actors.worker().OnEnd({}, effects), "ps_ssp worker 0: clock 1, idle");
}

// A separate pull is admitted by the same rule as a pull within a push.
TEST(SspServer, APullWaitsForTheSlowest) {
  Actors actors("{name: ps_ssp, staleness: 0}");
  actors.Reach(actors.server(), 0, Push{.clock = 1});
  actors.Reach(actors.server(), 0, Pull{1});
  EXPECT_EQ(actors.text().find("> w0"), std::string::npos);
  actors.Reach(actors.server(), 1, Push{.clock = 1});
  EXPECT_NE(actors.text().find("> w0 weights: version 2, staleness 0"), std::string::npos);
}

TEST(PsState, IsOfOneStrategyAndSize) {
  const auto error_of = [](const char* saved, int workers) {
    Actors from(saved), to("{name: ps_ssp, servers: 2}", workers);
    return WhatOf<CheckpointError>([&] { LoadState(to.server(), SaveState(from.server())); });
  };
  EXPECT_EQ(error_of("{name: ps_ssp, servers: 2}", 2), "no error");
  EXPECT_EQ(error_of("{name: ps_ssp, servers: 2}", 3),
            "saved 'finished' has 2 values instead of 3");
  EXPECT_EQ(error_of("{name: ps_bsp}", 2),
            "saved state holds 'version' where 'finished' is expected");
}

TEST(PsState, HashFollowsEveryStep) {
  Actors actors("{name: ps_asp}");
  const std::string before = HashState(actors.server());
  actors.Reach(actors.server(), 0, Push{.clock = 1});
  EXPECT_NE(HashState(actors.server()), before);
}

TEST(Messages, TravelWhole) {
  const Push push{3, 2, 17, 0.1, 1, 1};
  const Push arrived = Unpack<Push>(Pack(push));
  EXPECT_EQ(MessageText({}, Pack(arrived)),
            "push: clock 3, version 2, samples 17, loss 0.1, stop, wants weights");
  EXPECT_EQ(Unpack<Pull>(Pack(Pull{7})).clock, 7);
  EXPECT_EQ(MessageText({}, Pack(Weights{5, 4, 17, 0.2, 1})),
            "weights: version 5, staleness 4, samples 17, loss 0.2, stop");
}

}  // namespace
}  // namespace dtrain::ps
