#include "framework/comm/local/local_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "framework/core/error.h"
#include "tests/comm/transport_conformance.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

struct Case {
  TransportScenario scenario;
  int ranks;
};

class LocalTransportTest : public ::testing::TestWithParam<Case> {};

TEST_P(LocalTransportTest, Conforms) {
  LocalWorld::Run(GetParam().ranks, GetParam().scenario.body);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const TransportScenario& scenario : TransportScenarios()) {
    for (const int ranks : Worlds({1, 2, 3, 5, 8})) cases.push_back({scenario, ranks});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Conformance, LocalTransportTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return info.param.scenario.name + std::to_string(info.param.ranks);
                         });

template <class Body>
std::string PeerLostText(Body body) {
  try {
    body();
  } catch (const PeerLostError& error) {
    EXPECT_EQ(error.hint(), "look for the first error of that rank");
    return error.what();
  }
  return "no PeerLostError";
}

TEST(LocalWorld, WhoReceivesFromARankThatEndedIsNotified) {
  LocalWorld world(2);
  const auto stays = world.Connect(0);
  auto leaves = world.Connect(1);
  std::vector<int> in(1);
  Request request = stays->Receive(1, Tag::kBulk, WritableBytesOf(in));
  EXPECT_FALSE(stays->Test(request));
  leaves.reset();
  EXPECT_EQ(PeerLostText([&] { stays->Test(request); }), "rank 1 is gone: it has ended");
}

TEST(LocalWorld, WhoSendsToARankThatEndedIsNotified) {
  LocalWorld world(2);
  const auto stays = world.Connect(0);
  auto leaves = world.Connect(1);
  const std::vector<int> out(1);
  Request request = stays->Send(1, Tag::kBulk, BytesOf(out));
  leaves.reset();
  EXPECT_EQ(PeerLostText([&] { stays->Test(request); }), "rank 1 is gone: it has ended");
}

TEST(LocalWorld, AFailureReachesThoseWhoWaitForAnyone) {
  LocalWorld world(3);
  const auto stays = world.Connect(0);
  EXPECT_FALSE(stays->Probe(Tag::kControl).has_value());
  world.Fail(2, "killed by a test");
  EXPECT_EQ(PeerLostText([&] { stays->Probe(Tag::kControl); }), "rank 2 is gone: killed by a test");
  EXPECT_EQ(PeerLostText([&] { stays->Barrier(); }), "rank 2 is gone: killed by a test");
}

TEST(LocalWorld, MessagesOfARankThatEndedAreTakenBack) {
  LocalWorld world(2);
  const auto stays = world.Connect(0);
  auto leaves = world.Connect(1);
  {
    const std::vector<int> out(1000);
    leaves->Send(0, Tag::kControl, BytesOf(out));
    EXPECT_TRUE(stays->Probe(Tag::kControl).has_value());
    leaves.reset();
  }
  EXPECT_FALSE(stays->Probe(Tag::kControl).has_value());
}

TEST(LocalWorld, RunThrowsTheFirstCauseAndWakesTheOthers) {
  std::atomic<int> notified = 0;
  const auto body = [&notified](Transport& transport) {
    if (transport.rank() == 1) throw DataError("no such file");
    try {
      transport.Barrier();
    } catch (const PeerLostError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 is gone: it ended with an error"));
      ++notified;
      throw;
    }
  };
  EXPECT_THROW(LocalWorld::Run(4, body), DataError);
  EXPECT_GE(notified, 1);
}

TEST(LocalWorldDeathTest, AMessageOfAnotherSizeIsOurOwnFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(LocalWorld::Run(1,
                               [](Transport& transport) {
                                 const std::vector<int> out(2);
                                 std::vector<int> in(1);
                                 transport.Send(0, Tag::kBulk, BytesOf(out));
                                 transport.Receive(0, Tag::kBulk, WritableBytesOf(in));
                               }),
               "message from rank 0, tag 3, has 8 bytes instead of 4");
}

}  // namespace
}  // namespace dtrain
