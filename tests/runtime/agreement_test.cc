#include "framework/runtime/launch/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LineDiff, ShowsTheLinesThatDiffer) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "a\nx\nc\nd\n"), "  - b\n  + x\n  - \n  + d\n");
}

TEST(LineDiff, EndsAfterTheMost) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "x\ny\nz\n", 1), "  - a\n  + x\n  ...\n");
}

TEST(Agreement, EqualFactsPass) {
  LocalWorld::Run(3, [](Transport& transport) {
    CheckAgreement(transport, {{"config", "a\nb"}, {"data set", ""}});
  });
}

TEST(Agreement, EveryRankLearnsWhoDiffersInWhat) {
  LocalWorld::Run(3, [](Transport& transport) {
    std::string what;
    try {
      const std::string config = transport.rank() == 2 ? "lr: 1\nbatch: 8" : "lr: 1\nbatch: 4";
      CheckAgreement(transport, {{"program", "0.1"}, {"config", config}});
    } catch (const Error& error) {
      what = error.what();
    }
    EXPECT_THAT(what, AllOf(HasSubstr("rank 2 has another config than rank 0"),
                            HasSubstr("  - batch: 4\n  + batch: 8\n"), Not(HasSubstr("rank 1"))));
  });
}

}  // namespace
}  // namespace dtrain
