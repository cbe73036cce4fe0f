#include "framework/core/lock_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using Answer = LockFile::Answer;

class LockFileTest : public testing::Test {
 protected:
  LockFileTest() {
    std::string pattern = (fs::temp_directory_path() / "dtrain-lock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LockFileTest() override { fs::remove_all(folder_); }

  fs::path path() const { return folder_ / "lock"; }
  fs::perms Mode() const { return fs::status(path()).permissions(); }

  fs::path folder_;
};

// A Reader does what a user with read permission alone can do to the file.
class Reader {
 public:
  explicit Reader(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY)) {
    EXPECT_EQ(::flock(fd_, LOCK_SH | LOCK_NB), 0);
  }
  ~Reader() { ::close(fd_); }
  Reader(const Reader&) = delete;

 private:
  int fd_;
};

TEST_F(LockFileTest, NobodyElseMayOpenIt) {
  const mode_t before = ::umask(0);
  LockFile file(path());
  ::umask(before);
  EXPECT_EQ(file.Take(), Answer::kLocked);
  EXPECT_EQ(Mode(), fs::perms{0600});
  EXPECT_EQ(LockFile(path()).Take(), Answer::kHeld);
}

TEST_F(LockFileTest, AFileOfAnEarlierProgramIsReplacedWhereItIsFree) {
  std::ofstream(path()) << "old";
  fs::permissions(path(), fs::perms{0644});
  const int opened_before = ::open(path().c_str(), O_RDONLY);
  LockFile file(path());
  EXPECT_EQ(file.Take(), Answer::kLocked);
  EXPECT_EQ(Mode(), fs::perms{0600});
  EXPECT_EQ(::flock(opened_before, LOCK_EX | LOCK_NB), 0) << "the old one is nobody's lock";
  EXPECT_EQ(LockFile(path()).Take(), Answer::kHeld);
  ::close(opened_before);
}

TEST_F(LockFileTest, AReadersLockHoldsNobodyUp) {
  std::ofstream(path()) << "old";
  fs::permissions(path(), fs::perms{0644});
  const Reader reader(path());
  LockFile file(path());
  EXPECT_EQ(file.Take(), Answer::kHeld);
  EXPECT_TRUE(file.Replace());
  EXPECT_EQ(file.Take(), Answer::kLocked);
  EXPECT_EQ(Mode(), fs::perms{0600});
}

TEST_F(LockFileTest, AFileOfOursAloneIsNotReplaced) {
  LockFile holder(path());
  ASSERT_EQ(holder.Take(), Answer::kLocked);
  LockFile file(path());
  EXPECT_FALSE(file.Replace());
  EXPECT_TRUE(holder.IsThere());
}

// The mode stays 0666, as on a file system that has one mode for all files.
TEST_F(LockFileTest, IsReplacedOnce) {
  LockFile file(path());
  for (const bool first : {true, false}) {
    fs::permissions(path(), fs::perms{0666});
    EXPECT_EQ(file.Replace(), first);
  }
  EXPECT_EQ(file.Take(), Answer::kLocked);
}

TEST_F(LockFileTest, AFileThatWasRemovedIsMadeAgain) {
  LockFile file(path());
  fs::remove(path());
  EXPECT_EQ(file.Take(), Answer::kLocked);
  EXPECT_TRUE(file.IsThere());
  file.Remove();
  EXPECT_FALSE(fs::exists(path()));
}

// The waiting lock still has the removed file open.  It must notice that and lock a new file.
TEST_F(LockFileTest, WhoOpenedTheFileBeforeItsHolderRemovedItLocksANewOne) {
  std::optional<LockFile> holder(path());
  ASSERT_EQ(holder->Take(), Answer::kLocked);
  LockFile waiting(path()), third(path());
  EXPECT_EQ(waiting.Take(), Answer::kHeld);
  holder->Remove();
  holder.reset();
  EXPECT_EQ(waiting.Take(), Answer::kLocked);
  EXPECT_TRUE(waiting.IsThere());
  EXPECT_EQ(third.Take(), Answer::kHeld);
  EXPECT_EQ(LockFile(path()).Take(), Answer::kHeld);
}

int NoLocksHere(int, int) {
  errno = ENOLCK;
  return -1;
}

TEST_F(LockFileTest, SaysThatThereAreNoLocks) {
  EXPECT_EQ(LockFile(path(), NoLocksHere).Take(), Answer::kNoLocks);
}

TEST_F(LockFileTest, ALinkIsNotFollowed) {
  fs::create_symlink(folder_ / "elsewhere", path());
  EXPECT_EQ(WhatOf<RunFileError>([&] { LockFile file(path()); }),
            "cannot open " + path().string() + ": Too many levels of symbolic links");
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
}

TEST_F(LockFileTest, APipeIsNoLock) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(WhatOf<RunFileError>([&] { LockFile file(path()); }),
            path().string() + " is a pipe, not a regular file");
}

}  // namespace
}  // namespace dtrain
