#include <gtest/gtest.h>

#include <algorithm>

#include "framework/comm/local/local_world.h"
#include "framework/device/cpu/threads.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

TEST(AgreeOnThreads, RanksOfOneNodeShareItsCpus) {
  const int cpus = static_cast<int>(UsableCpus().size());
  for (const int ranks : {1, 2, 3}) {
    LocalWorld::Run(ranks, [&](Transport& transport) {
      EXPECT_EQ(AgreeOnThreads(transport, GatherCpus(transport), ranks), std::max(1, cpus / ranks))
          << ranks << " ranks";
    });
  }
}

}  // namespace
}  // namespace dtrain
