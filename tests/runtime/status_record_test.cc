#include "framework/launch/status_record.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

TEST(StatusRecord, ShowsWhereARankStands) {
  const auto folder = FreshFolder();
  StatusRecord two(folder, 2), zero(folder, 0);
  two.Update(Doing::kEvaluating, 815, 3.5);
  const std::vector<RankStatus> records = ReadStatusRecords(folder);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].rank, 0);
  EXPECT_EQ(records[0].doing, Doing::kStarting);
  EXPECT_EQ(records[1].rank, 2);
  EXPECT_EQ(records[1].pid, ::getpid());
  EXPECT_FALSE(records[1].host.empty());
  EXPECT_EQ(records[1].doing, Doing::kEvaluating);
  EXPECT_EQ(records[1].step, 815);
  EXPECT_EQ(records[1].compute_seconds, 3.5);
  EXPECT_FALSE(records[1].exit_code.has_value());
}

TEST(StatusRecord, IsNotKeptMappedBehindItsEnd) {
  const auto folder = FreshFolder();
  const auto is_mapped = [&] {
    return Slurp("/proc/self/maps").find(folder.string()) != std::string::npos;
  };
  {
    const StatusRecord record(folder, 0);
    EXPECT_TRUE(is_mapped());
  }
  EXPECT_FALSE(is_mapped());
}

TEST(StatusRecord, IsForItsOwnerAlone) {
  const auto folder = FreshFolder();
  const StatusRecord record(folder, 0);
  EXPECT_EQ(std::filesystem::status(folder / "rank-0").permissions(), std::filesystem::perms{0600});
}

TEST(StatusRecord, KeepsTheLastWordAndStep) {
  const auto folder = FreshFolder();
  StatusRecord record(folder, 0);
  record.Update(Doing::kTraining, 7);
  record.End(5, std::string(2000, 'x'));
  const RankStatus read = ReadStatusRecords(folder).at(0);
  EXPECT_EQ(read.doing, Doing::kEnded);
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.exit_code, 5);
  EXPECT_EQ(read.message, std::string(499, 'x'));
}

// A rank that has ended well is not a lost one.
TEST(StatusRecord, TellsAGoodEndFromNone) {
  const auto folder = FreshFolder();
  StatusRecord record(folder, 0);
  record.End(0);
  EXPECT_EQ(ReadStatusRecords(folder).at(0).exit_code, 0);
}

TEST(StatusRecord, OutlivesAKilledRank) {
  const auto folder = FreshFolder();
  const pid_t child = ::fork();
  if (child == 0) {
    StatusRecord record(folder, 1);
    record.Update(Doing::kTraining, 42);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ReadStatusRecords(folder).at(0).step, 42);
  EXPECT_EQ(ReadStatusRecords(folder).at(0).pid, child);
}

TEST(StatusRecord, WritesToNowhereWithoutAFolder) {
  const auto nowhere = FreshFolder() / "at/all";
  StatusRecord none("", 0), missing(nowhere, 0);
  none.Update(Doing::kTraining, 1);
  missing.End(0);
  EXPECT_TRUE(ReadStatusRecords(nowhere).empty());
}

TEST(StatusRecord, ForeignAndTornFilesAreNoRecords) {
  const auto folder = FreshFolder();
  Spit(folder / "rank-0", "short");
  Spit(folder / "rank-1", std::string(4096, 'x'));
  EXPECT_TRUE(ReadStatusRecords(folder).empty());
}

TEST(StatusRecord, OfThisProcessUsesTheNamedFolder) {
  const auto folder = FreshFolder();
  ::chmod(folder.c_str(), 0700);
  ::setenv(kStatusFolderVariable, folder.c_str(), 1);
  StatusRecord record = StatusRecord::OfThisProcess(4);
  EXPECT_EQ(StatusFolder(), folder);
  ::unsetenv(kStatusFolderVariable);
  EXPECT_EQ(ReadStatusRecords(folder).at(0).rank, 4);
  EXPECT_TRUE(StatusFolder().empty());
}

// Another user may have created the folder on another machine, where the supervisor's own is missing.
TEST(StatusRecord, AFolderThatOthersMayEnterIsNotWrittenInto) {
  const auto folder = FreshFolder();
  Spit(folder / "mine", "something");
  std::filesystem::create_symlink(folder / "mine", folder / "rank-4");
  for (const mode_t mode : {0755, 0700}) {
    ::chmod(folder.c_str(), mode);
    ::setenv(kStatusFolderVariable, folder.c_str(), 1);
    StatusRecord record = StatusRecord::OfThisProcess(4);
    StatusRecord other = StatusRecord::OfThisProcess(5);
    ::unsetenv(kStatusFolderVariable);
    EXPECT_EQ(std::filesystem::exists(folder / "rank-5"), mode == 0700);
    EXPECT_EQ(Slurp(folder / "mine"), "something") << "a link is not followed";
  }
}

TEST(StatusRecord, SlowestRankHasTheMostComputeTime) {
  EXPECT_EQ(SlowestRank({}), -1);
  EXPECT_EQ(SlowestRank({{.rank = 0, .compute_seconds = 9}}), -1);
  EXPECT_EQ(SlowestRank({{.rank = 0}, {.rank = 1}}), -1);
  EXPECT_EQ(SlowestRank({{.rank = 0, .compute_seconds = 1}, {.rank = 1, .compute_seconds = 2}}), 1);
}

}  // namespace
}  // namespace dtrain
