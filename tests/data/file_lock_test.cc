#include "framework/data/files/file_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/core/stop_request.h"
#include "tests/data/temp_folder.h"
#include "tests/support/as_nobody.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

class FileLockTest : public testing::Test {
 protected:
  fs::path path() const { return folder_ / "lock"; }
  FileLock Take(const FileLock::Wait& wait) {
    return FileLock(
        path(), [this](const std::string& holder) { said_.push_back(holder); }, wait);
  }
  const std::string self_ = fmt::format("process {} on {}", ::getpid(), HostName());
  TempFolder folder_;
  std::vector<std::string> said_;
};

// The wait is 0 s, so the result does not depend on time.
TEST_F(FileLockTest, AWaitEndsWithTheHoldersName) {
  const FileLock holder = Take({});
  EXPECT_EQ(
      MessageOf<DataError>([&] { Take({.most_seconds = 0}); }),
      self_ + " has had " + path().string() +
          " for more than 0 s | check whether it still works; if not, end it and start again");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FileLockTest, WhoWaitsSaysForWhom) {
  const FileLock holder = Take({});
  EXPECT_THROW(Take({.most_seconds = 0.2, .say_seconds = 0}), DataError);
  EXPECT_THAT(said_, Each(self_));
  EXPECT_THAT(said_, testing::Not(IsEmpty()));
}

TEST_F(FileLockTest, AStopEndsAWait) {
  const FileLock holder = Take({});
  RequestStop(SIGUSR1);
  EXPECT_EQ(WhatOf<StoppedError>([&] { Take({}); }),
            "stopped by SIGUSR1 while waiting for " + path().string());
  ForgetStopRequest();
}

TEST_F(FileLockTest, TheFileIsThereWhileItIsLocked) {
  {
    const FileLock lock = Take({});
    EXPECT_EQ(fs::status(path()).permissions(), fs::perms{0600});
  }
  EXPECT_FALSE(fs::exists(path()));
}

// Two users of a group share a folder.
TEST_F(FileLockTest, AnotherUsersLockIsNamed) {
  fs::permissions(folder_.path(), fs::perms{0777});
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const FileLock lock = Take({});
  std::string message;
  {
    const AsNobody nobody;
    if (!nobody.done()) GTEST_SKIP() << "root here cannot be somebody else";
    message = MessageOf<DataError>([&] { Take({}); });
  }
  EXPECT_EQ(message, "cannot open " + path().string() +
                         ": Permission denied | another user (number 0) works there, or a process "
                         "of that user was killed there: wait, or remove " +
                         path().string() + " if none of that user's is running");
}

TEST_F(FileLockTest, AReaderOfAnEarlierProgramsFileHoldsNobodyUp) {
  folder_.Write("lock", "");
  fs::permissions(path(), fs::perms{0644});
  const int reader = ::open(path().c_str(), O_RDONLY);
  ASSERT_EQ(::flock(reader, LOCK_SH | LOCK_NB), 0);
  const FileLock lock = Take({});
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms{0600});
  ::close(reader);
}

}  // namespace
}  // namespace dtrain
