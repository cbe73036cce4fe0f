#include "framework/comm/node_window.h"

#include <gtest/gtest.h>

#include <sys/statvfs.h>

#include "framework/comm/local/local_world.h"
#include "tests/comm/node_window_scenarios.h"

namespace dtrain {
namespace {

struct WindowCase {
  TransportScenario scenario;
  int ranks;
};

class NodeWindowTest : public ::testing::TestWithParam<WindowCase> {};

TEST_P(NodeWindowTest, OverThreads) { LocalWorld::Run(GetParam().ranks, GetParam().scenario.body); }

std::vector<WindowCase> WindowCases() {
  std::vector<WindowCase> cases;
  for (const TransportScenario& scenario : NodeWindowScenarios()) {
    for (const int ranks : {1, 2, 3, 5}) cases.push_back({scenario, ranks});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, NodeWindowTest, ::testing::ValuesIn(WindowCases()),
                         [](const auto& info) {
                           return info.param.scenario.name + std::to_string(info.param.ranks);
                         });

// The ranks are threads of one process and would capture each other's output, so it is checked for all together.
TEST(NodeWindow, ARankWithoutRoomLeavesAllWithoutAndOneSaysSo) {
  ::testing::internal::CaptureStderr();
  LocalWorld::Run(3, [](Transport& transport) {
    struct statvfs disk = {};
    ASSERT_EQ(::statvfs("/dev/shm", &disk), 0);
    const auto too_much = static_cast<int64_t>(disk.f_blocks * disk.f_frsize) / 4;
    const int64_t elements = transport.rank() == 2 ? too_much : kWindowElements;
    EXPECT_EQ(MakeWindow(transport, {.elements = elements}), nullptr);
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string words = "ranks 0, 1, 2 of one node cannot read each other's memory";
  const size_t at = said.find(words);
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find(words, at + 1), std::string::npos) << said;
  EXPECT_NE(said.find("in /dev/shm for each: No space left on device"), std::string::npos) << said;
}

TEST(NodeWindow, WhenItIsFullOrdinaryMemoryTakesItsPlace) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto window =
        MakeWindow(transport, {.elements = kWindowElements, .blobs_first = 1, .blobs_max = 2});
    BlobPools pools;
    pools.SendFrom(window.get());
    Blob one = pools.NewToSend(kWindowElements);
    const float* const memory = one.f32();
    const Blob two = pools.NewToSend(kWindowElements);
    EXPECT_FALSE(window->New(kWindowElements));
    const Blob ordinary = pools.NewToSend(kWindowElements);
    EXPECT_EQ(ordinary.size(), kWindowElements);
    EXPECT_EQ(window->Lend(ordinary, 1 - transport.rank()), std::nullopt);
    one = Blob();
    EXPECT_EQ(pools.NewToSend(kWindowElements).f32(), memory) << "free again";
  });
}

}  // namespace
}  // namespace dtrain
