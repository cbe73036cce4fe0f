#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/comm/mpi/mpi_runtime.h"
#include "framework/core/error.h"
#include "framework/sim/collective_cost.h"
#include "tests/comm/collective_conformance.h"
#include "tests/comm/sparse_scenarios.h"
#include "tests/comm_mpi/mpi_fixture.h"

namespace dtrain {
namespace {

class MpiCollectiveTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MpiCollectiveTest, Conforms) { RunCollectiveConformance(SharedTransport(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Conformance, MpiCollectiveTest, ::testing::ValuesIn(CollectiveNames()),
                         [](const auto& info) { return info.param; });

class MpiSparseCollectiveTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MpiSparseCollectiveTest, Conforms) { RunSparseConformance(SharedTransport(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Conformance, MpiSparseCollectiveTest,
                         ::testing::ValuesIn(SparseCollectiveNames()),
                         [](const auto& info) { return info.param; });

TEST(Ordered, AMillionFloatsAreTheCanonicalSum) {
  constexpr int64_t kFloats = 1'000'003;
  Transport& transport = SharedTransport();
  const auto collective = MakeCollective("ordered", transport);
  std::vector<float> data = GradientOf(transport.rank(), kFloats);
  WaitFor(*collective, collective->Start(data));
  EXPECT_TRUE(SameBits(data, CanonicalSum(transport.size(), kFloats)));
}

TEST(MpiCollective, IsListed) { EXPECT_THAT(CollectiveNames(), ::testing::Contains("mpi")); }

TEST(MpiCollective, NeedsTheMpiTransport) {
  LocalWorld world(1);
  const auto local = world.Connect(0);
  try {
    MakeCollective("mpi", *local);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "collective 'mpi' needs the mpi transport, not 'local'");
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("collective: ordered"));
  }
}

TEST(MpiCollective, HasNoCost) {
  try {
    CollectiveCost("mpi", 4, {}, 0);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "collective 'mpi' cannot be simulated");
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("halving_doubling"));
  }
}

TEST(PlainMpiAllreduce, Sums) {
  Transport& transport = SharedTransport();
  std::vector<float> data(1000, 1.0f);
  PlainMpiAllreduce(transport, data);
  EXPECT_EQ(data, std::vector<float>(1000, static_cast<float>(transport.size())));
}

}  // namespace
}  // namespace dtrain
