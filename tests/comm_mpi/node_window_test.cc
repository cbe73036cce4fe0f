// Tests windows between processes.
#include <gtest/gtest.h>

#include "tests/comm/node_window_scenarios.h"
#include "tests/comm_mpi/mpi_fixture.h"

namespace dtrain {
namespace {

class NodeWindowTest : public ::testing::TestWithParam<TransportScenario> {};

TEST_P(NodeWindowTest, OverMpi) { GetParam().body(SharedTransport()); }

INSTANTIATE_TEST_SUITE_P(Scenarios, NodeWindowTest, ::testing::ValuesIn(NodeWindowScenarios()),
                         [](const auto& info) { return info.param.name; });

TEST(NodeWindow, ARankWithoutRoomLeavesAllWithout) {
  ARankWithoutRoomLeavesAllWithout(SharedTransport());
}

}  // namespace
}  // namespace dtrain
