// Tests the counts of strategies, by name.
#include "framework/strategies/counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/bytes.h"
#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

const std::vector<StrategyCounter> kFruit = {{"pears", "pears"}, {"apples", "apples"}};

TEST(Counts, AddUpByName) {
  StrategyCounts one(kFruit), sum;
  EXPECT_FALSE(one.Any());
  one.Count("apples", 3);
  one.Count("apples", 4);
  sum.Add(one);
  sum.Add(one, 2);
  EXPECT_EQ(sum.Total("apples"), 21);
  EXPECT_EQ(sum.Total("pears"), 0);
  EXPECT_EQ(sum.Total("plums"), 0);
  EXPECT_TRUE(sum.Any());
  sum.Add(one, -3);
  EXPECT_EQ(sum, StrategyCounts(kFruit)) << "in the order of their declaration";
}

TEST(Counts, AreSentWithTheirNames) {
  StrategyCounts counts(kFruit);
  counts.Count("pears", 1LL << 40);
  EXPECT_EQ(FromBytes<StrategyCounts>(ToBytes(counts)), counts);
}

TEST(CountsDeathTest, ANameIsDeclaredOnce) {
  StrategyCounts counts(kFruit);
  EXPECT_DEATH(counts.Count("plums", 1), "the strategy declares no counter 'plums'");
  EXPECT_DEATH(StrategyCounts({{"pears", ""}, {"pears", ""}}), "two counters have the name pears");
}

// An actor that counts what its strategy does not declare stops here, whatever its history.
TEST(Counts, AreDeclaredByEveryStrategy) {
  for (const auto& [name, entry] : StrategyRegistry::All()) {
    SCOPED_TRACE(name);
    const auto strategy = MakeStrategy("{name: " + name + "}");
    for (const StrategyCounter& counter : strategy->counters()) {
      EXPECT_NE(std::string(counter.help), "") << counter.name;
    }
    ProtocolReport report = EmptyReport(*strategy);
    for (const auto& actor : MakeActors(*strategy, SetupFor(*strategy, 4, 10))) {
      actor->Report(report);
    }
    EXPECT_FALSE(report.counts.Any()) << "nothing has happened";
  }
}

}  // namespace
}  // namespace dtrain
