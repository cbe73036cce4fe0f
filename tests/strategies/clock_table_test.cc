#include "framework/strategies/ps/clock_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/random.h"

namespace dtrain::ps {
namespace {

// The simplest implementation of the table.
struct BruteForce {
  std::vector<int64_t> finished;
  std::vector<bool> removed;

  int64_t Minimum() const {
    int64_t minimum = INT64_MAX;
    for (size_t w = 0; w < finished.size(); ++w) {
      if (!removed[w]) minimum = std::min(minimum, finished[w]);
    }
    return minimum;
  }
  int64_t Maximum() const {
    int64_t maximum = 0;
    for (size_t w = 0; w < finished.size(); ++w) {
      if (!removed[w]) maximum = std::max(maximum, finished[w]);
    }
    return maximum;
  }
};

TEST(ClockTable, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed, Purpose::kSelfTest);
    const int workers = 1 + static_cast<int>(random.Below(0, 9));
    ClockTable table(workers);
    BruteForce brute{std::vector<int64_t>(workers, 0), std::vector<bool>(workers, false)};
    int present = workers;
    for (uint64_t i = 1; i < 300; ++i) {
      // The square favours low numbers: some workers are much faster than others.
      const int worker = static_cast<int>(random.Below(2 * i, workers) *
                                          random.Below(2 * i + 1, workers) / workers);
      if (brute.removed[worker]) continue;
      const int64_t before = brute.Minimum();
      const bool remove = present > 1 && random.Below(1000 + i, 100) == 0;
      present -= remove ? 1 : 0;
      brute.removed[worker] = remove;
      if (!remove) ++brute.finished[worker];
      const bool moved = remove ? table.Remove(worker) : table.Finish(worker);
      ASSERT_EQ(moved, brute.Minimum() != before) << "seed " << seed;
      ASSERT_EQ(table.Minimum(), brute.Minimum()) << "seed " << seed;
      ASSERT_EQ(table.Removed(worker), remove);
      for (int w = 0; w < workers; ++w) {
        if (brute.removed[w]) continue;
        ASSERT_EQ(table.Lead(w), brute.finished[w] - brute.Minimum()) << "seed " << seed;
        ASSERT_EQ(table.IsFastest(w), brute.finished[w] == brute.Maximum()) << "seed " << seed;
      }
    }
  }
}

TEST(ClockTable, TheLastOneMayLeave) {
  ClockTable table(2);
  table.Finish(1);
  EXPECT_TRUE(table.Remove(0));
  EXPECT_EQ(table.Minimum(), 1);
  EXPECT_FALSE(table.Remove(1));
  EXPECT_EQ(table.Describe(), "- -");
}

TEST(ClockTable, GoesOnFromSavedState) {
  ClockTable table(4), loaded(4);
  for (const int worker : {0, 0, 0, 1, 3, 3}) table.Finish(worker);
  table.Remove(2);
  LoadState(loaded, SaveState(table));
  EXPECT_EQ(loaded.Describe(), "3 1 - 2");
  EXPECT_EQ(loaded.Minimum(), 1);
  EXPECT_TRUE(loaded.Finish(1));
  EXPECT_EQ(loaded.Minimum(), 2);
  EXPECT_EQ(loaded.Lead(0), 1);
}

TEST(ClockTable, RefusesTheStateOfAnotherRun) {
  ClockTable four(4), five(5);
  try {
    LoadState(five, SaveState(four));
    FAIL() << "loaded";
  } catch (const CheckpointError& error) {
    EXPECT_STREQ(error.what(), "saved 'finished' has 4 values instead of 5");
    EXPECT_EQ(error.hint(), "it was saved with another number of workers or servers");
  }
}

TEST(ClockTable, DescribesManyByTheSlowest) {
  ClockTable table(2048);
  for (int worker = 0; worker < 2048; ++worker) {
    for (int step = 0; step < (worker == 7 ? 1 : worker == 1000 ? 2 : 4); ++step) {
      table.Finish(worker);
    }
  }
  EXPECT_EQ(table.Describe(), "1..4, slowest 7 (1), 1000 (2), 0 (4)");
}

TEST(ClockTable, DescribesUpToEightOneByOne) {
  EXPECT_EQ(ClockTable(8).Describe(), "0 0 0 0 0 0 0 0");
  EXPECT_EQ(ClockTable(9).Describe(), "0..0, slowest 0 (0), 1 (0), 2 (0)");
  ClockTable table(9);
  for (int worker = 0; worker < 7; ++worker) table.Remove(worker);
  EXPECT_EQ(table.Describe(), "0..0, slowest 7 (0), 8 (0)");
  for (const int worker : {7, 8}) table.Remove(worker);
  EXPECT_EQ(table.Describe(), "-");
}

TEST(ClockTableDeathTest, KnowsWhoHasLeft) {
  ClockTable table(2);
  table.Remove(0);
  EXPECT_DEATH(table.Finish(0), "worker 0 was removed");
  EXPECT_DEATH(table.Remove(0), "worker 0 was removed before");
}

}  // namespace
}  // namespace dtrain::ps
