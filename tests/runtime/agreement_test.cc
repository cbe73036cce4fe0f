#include "framework/launch/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/launch/world.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(LineDiff, ShowsTheLinesThatDiffer) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "a\nx\nc\nd\n"), "  - b\n  + x\n  - \n  + d\n");
}

TEST(LineDiff, EndsAfterTheMost) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "x\ny\nz\n", 1), "  - a\n  + x\n  ...\n");
}

TEST(Agreement, EqualInfoPass) {
  LocalWorld::Run(3, [](Transport& transport) {
    CheckAgreement(transport, {{"config", "a\nb"}, {"data set", ""}});
  });
}

TEST(Agreement, EveryRankLearnsWhoDiffersInWhat) {
  LocalWorld::Run(4, [](Transport& transport) {
    std::string what;
    try {
      const std::string program = transport.rank() == 1 ? "0.2" : "0.1";
      const std::string config = transport.rank() == 3 ? "lr: 1\nbatch: 8" : "lr: 1\nbatch: 4";
      CheckAgreement(transport, {{"program", program}, {"config", config}});
    } catch (const Error& error) {
      what = error.what();
    }
    EXPECT_EQ(what,
              "the ranks do not agree on the run\n"
              "rank 1 has another program than rank 0 (- rank 0, + rank 1):\n  - 0.1\n  + 0.2\n"
              "rank 3 has another config than rank 0 (- rank 0, + rank 3):\n"
              "  - batch: 4\n  + batch: 8\n");
  });
}

// Returns the exit code and the stderr of a process that throws `Thrown`.
template <class Thrown>
std::pair<int, std::string> LastWordsAfter(const Thrown& thrown) {
  char name[] = "dtrain";
  char* arguments[] = {name, nullptr};
  testing::internal::CaptureStderr();
  const int code = RunOnRanks(1, arguments, [&](World&) -> int { throw thrown; });
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(RunOnRanks, WhatIsThrownIsReportedAndGivesTheCode) {
  EXPECT_THAT(LastWordsAfter(DataError("no file", "fetch it")),
              Pair(3, AllOf(HasSubstr("error no file\n"), HasSubstr("error   fetch it\n"))));
  EXPECT_THAT(LastWordsAfter(SharedError(ExitCode::kUsage, "no run", "")),
              Pair(2, AllOf(HasSubstr("error no run\n"), Not(HasSubstr("error   ")))));
  EXPECT_THAT(LastWordsAfter(std::bad_alloc()), Pair(2, HasSubstr("error there is no memory\n")));
  EXPECT_THAT(LastWordsAfter(std::logic_error("odd")),
              Pair(1, HasSubstr("error internal error: odd\n")));
}

// Returns the message that each of three ranks gets when the ranks in `failing` throw.
std::vector<std::string> HeardWhen(const std::vector<int>& failing) {
  std::vector<std::string> heard(3);
  LocalWorld::Run(3, [&](Transport& transport) {
    const int rank = transport.rank();
    const bool fails = std::find(failing.begin(), failing.end(), rank) != failing.end();
    try {
      TryTogether(transport, [&] {
        if (fails) throw DataError(fmt::format("no file {}", rank), "fetch it");
      });
    } catch (const SharedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kData);
      heard[rank] = std::string(error.what()) + " | " + error.hint();
    }
  });
  return heard;
}

TEST(TryTogether, AllHearOfTheLowestRankThatFailed) {
  EXPECT_THAT(HeardWhen({}), Each(""));
  EXPECT_THAT(HeardWhen({0}), Each("no file 0 | fetch it"));
  EXPECT_THAT(HeardWhen({2}), Each("rank 2: no file 2 | fetch it"));
  EXPECT_THAT(HeardWhen({1, 2}), Each("rank 1: no file 1 | fetch it"));
  EXPECT_THAT(HeardWhen({0, 1, 2}), Each("no file 0 | fetch it"));
}

}  // namespace
}  // namespace dtrain
