#include "framework/comm/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "framework/comm/collective_schedule.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "tests/comm/collective_conformance.h"
#include "tests/comm/schedule_traffic.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class LocalCollectiveTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(LocalCollectiveTest, Conforms) {
  const auto& [name, ranks] = GetParam();
  LocalWorld::Run(
      ranks, [&name = name](Transport& transport) { RunCollectiveConformance(transport, name); });
}

INSTANTIATE_TEST_SUITE_P(Conformance, LocalCollectiveTest,
                         ::testing::Combine(::testing::ValuesIn(CollectiveNames()),
                                            ::testing::ValuesIn(Worlds({1, 2, 3, 4, 5, 8}))),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

TEST(Ordered, AMillionFloatsAreTheCanonicalSumForAnyChunking) {
  constexpr int64_t kFloats = 1'000'003;
  const std::vector<float> want = CanonicalSum(3, kFloats);
  LocalWorld::Run(3, [&want](Transport& transport) {
    const std::vector<float> gradient = GradientOf(transport.rank(), kFloats);
    for (const int64_t chunk_bytes : {0, 1 << 15, 1 << 23}) {
      const auto collective = MakeCollective("ordered", transport, {.chunk_bytes = chunk_bytes});
      std::vector<float> data = gradient;
      WaitFor(*collective, collective->Start(data));
      EXPECT_TRUE(SameBits(data, want)) << "chunks of " << chunk_bytes;
    }
  });
}

TEST(Collective, TrafficIsWhatTheScheduleCosts) {
  constexpr int64_t kFloats = 16 * 4 * 1000;
  LocalWorld::Run(4, [](Transport& transport) {
    const std::vector<int> nodes = {0, 0, 1, 1};
    for (const auto& [name, entry] : CollectiveRegistry::All()) {
      if (entry.rules == nullptr) continue;
      const auto collective =
          MakeCollective(name, transport, {.chunk_bytes = 4 * kFloats, .node_of = nodes});
      std::vector<float> data(kFloats, 1.0f);
      for (int i = 0; i < 3; ++i) WaitFor(*collective, collective->Start(data));
      const CollectiveSchedule schedule = entry.rules(4).scheduler(4, transport.rank(), nodes);
      const ScheduleTraffic cost = TrafficOf(schedule, kFloats);
      EXPECT_EQ(collective->traffic().bytes_inside,
                3 * BytesInside(schedule, transport.rank(), nodes, kFloats));
      EXPECT_EQ(collective->traffic().bytes_sent, 3 * cost.bytes_sent);
      EXPECT_EQ(collective->traffic().bytes_received, 3 * cost.bytes_received);
      EXPECT_EQ(collective->traffic().messages, 3 * cost.messages);
    }
  });
}

// Two ranks sum up to 64 KB in one round and up to 4 MB in two rounds with one message each; longer vectors are cut.
TEST(Collective, TwoRanksCutWhatIsLong) {
  LocalWorld::Run(2, [](Transport& transport) {
    for (const auto& [bytes, messages] : {std::pair{64 << 10, 1}, std::pair{(64 << 10) + 64, 2},
                                          std::pair{4 << 20, 2}, std::pair{(4 << 20) + 64, 18}}) {
      std::vector<float> data(static_cast<size_t>(bytes) / sizeof(float), 1.0f);
      const auto collective = MakeCollective("ordered", transport);
      WaitFor(*collective, collective->Start(data));
      EXPECT_EQ(collective->traffic().messages, messages) << bytes;
      EXPECT_EQ(std::count(data.begin(), data.end(), 2.0f), std::ssize(data));
    }
  });
}

TEST(Collective, ALostRankReachesWhoeverReduces) {
  const auto body = [](Transport& transport) {
    if (transport.rank() == 2) throw DivergedError("loss is NaN");
    const auto collective = MakeCollective("ordered", transport);
    std::vector<float> data(100'000);
    EXPECT_THROW(WaitFor(*collective, collective->Start(data)), PeerLostError);
  };
  EXPECT_THROW(LocalWorld::Run(3, body), DivergedError);
}

TEST(Collective, ThatEndsInFlightTakesItsMemoryBack) {
  const auto body = [](Transport& transport) {
    std::vector<float> data(100'000);
    const auto collective = MakeCollective("ordered", transport);
    collective->Start(data);
    throw DivergedError("loss is NaN");
  };
  for (int i = 0; i < 20; ++i) EXPECT_THROW(LocalWorld::Run(3, body), DivergedError);
}

TEST(Collective, NamesAreListedAndAnUnknownOneIsExplained) {
  EXPECT_THAT(CollectiveNames(), Contains("ordered"));
  EXPECT_THAT(CollectiveNames(), Contains("ring"));
  LocalWorld world(1);
  const auto transport = world.Connect(0);
  try {
    MakeCollective("orderd", *transport);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown collective 'orderd'");
    EXPECT_THAT(error.hint(), HasSubstr("did you mean 'ordered'?"));
  }
}

}  // namespace
}  // namespace dtrain
