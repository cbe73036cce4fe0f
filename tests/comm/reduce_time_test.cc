#include "framework/comm/reduce_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/comm/local/local_world.h"
#include "tests/support/counting_transport.h"

namespace dtrain {
namespace {

class BarrierCounter : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  void Barrier() override {
    ++barriers;
    ForwardingTransport::Barrier();
  }

  int barriers = 0;
};

TEST(ReduceTable, GoesAlongTheLinesBetweenItsEntries) {
  const ReduceTable table{{{100, 1}, {200, 2}, {201, 5}, {400, 7}}};
  EXPECT_EQ(table.Seconds(0), 1);
  EXPECT_EQ(table.Seconds(100), 1);
  EXPECT_EQ(table.Seconds(150), 1.5);
  EXPECT_EQ(table.Seconds(200), 2);
  EXPECT_EQ(table.Seconds(201), 5);
  EXPECT_DOUBLE_EQ(table.Seconds(400), 7);
  EXPECT_DOUBLE_EQ(table.Seconds(599), 9) << "at the rate of the last two";
}

TEST(ReduceTable, MayHaveFewEntries) {
  EXPECT_EQ(ReduceTable{}.Seconds(5), 0);
  EXPECT_EQ((ReduceTable{{{100, 3}}}.Seconds(5)), 3);
  EXPECT_EQ((ReduceTable{{{100, 3}}}.Seconds(500)), 3);
  EXPECT_EQ((ReduceTable{{{100, 1}, {200, 2}}}.Seconds(300)), 3);
}

TEST(ReduceTime, SizesAscendToTheLargest) {
  for (const int64_t small : {0, 100, 16 << 10}) {
    for (int64_t most = 64; most < 100'000; most += 4) {
      const std::vector<int64_t> sizes = SizesToMeasure(most, small);
      ASSERT_EQ(sizes.back(), most);
      ASSERT_EQ(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()), sizes.end())
          << most << ", small " << small;
    }
  }
  EXPECT_EQ(SizesToMeasure(4), std::vector<int64_t>{64});
}

TEST(ReduceTime, SmallAndLargeVectorsAreMeasuredOnBothSidesOfTheStep) {
  for (const int64_t small : {6'036, 16 << 10}) {
    const std::vector<int64_t> sizes = SizesToMeasure(1 << 20, small);
    EXPECT_TRUE(std::count(sizes.begin(), sizes.end(), small)) << small;
    EXPECT_TRUE(std::count(sizes.begin(), sizes.end(), small + 64)) << small;
  }
}

// In the small schedule of `ordered` a rank sends at most as much as to 7 others, and one of two ranks at most as much
// as in the large one; a ring has only one schedule.
TEST(ReduceTime, TheStepIsWhereTheCollectiveHasIt) {
  EXPECT_EQ(SmallBytesOf("ordered", 2), 64 << 10);
  EXPECT_EQ(SmallBytesOf("ordered", 3), 16 << 10);
  EXPECT_EQ(SmallBytesOf("ordered", 8), 16 << 10);
  EXPECT_EQ(SmallBytesOf("ordered", 15), 8 << 10);
  EXPECT_EQ(SmallBytesOf("ring", 15), 0);
  LocalWorld::Run(9, [](Transport& transport) {
    const auto collective = MakeCollective("ordered", transport);
    std::vector<float> memory(25'000);
    const ReduceTable table = MeasureReductions(transport, *collective, memory);
    const auto measured = [&](int64_t bytes) {
      return std::any_of(table.entries.begin(), table.entries.end(),
                         [bytes](const ReduceTable::Entry& entry) { return entry.bytes == bytes; });
    };
    EXPECT_TRUE(measured(14'336));  // 16 KB * 7 / 8
    EXPECT_FALSE(measured(16 << 10));
  });
}

TEST(ReduceTime, EveryRankHasATable) {
  LocalWorld::Run(3, [](Transport& transport) {
    const auto collective = MakeCollective("ordered", transport);
    std::vector<float> memory(25'000);
    const ReduceTable table = MeasureReductions(transport, *collective, memory);
    EXPECT_EQ(table.entries.size(), SizesToMeasure(100'000, 16 << 10).size());
    for (const ReduceTable::Entry& entry : table.entries) EXPECT_GT(entry.seconds, 0);
  });
}

// Sums follow one another without barriers, as in a step: a barrier before each would add the lateness of the slowest
// rank to every sum.
TEST(ReduceTime, SumsOfASizeFollowOneAnotherWithoutABarrier) {
  LocalWorld::Run(2, [](Transport& world) {
    BarrierCounter transport(world);
    int sums = 0;
    const ReduceTable table = MeasureSums(
        transport, {64, 256, 1024}, [] { return true; }, [&](size_t) { ++sums; });
    EXPECT_EQ(table.entries.size(), 3);
    EXPECT_EQ(transport.barriers, 3) << "one for each size";
    EXPECT_GE(sums, 3 * 4) << "the first of each warms up";
  });
}

}  // namespace
}  // namespace dtrain
