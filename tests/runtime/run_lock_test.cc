#include "framework/results/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/file_size_limit.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

int NoLocks(int, int) {
  errno = ENOLCK;
  return -1;
}

std::string TryToLock(const fs::path& folder, LockFile::Flock flock = ::flock) {
  try {
    const RunLock lock(folder, flock);
    return "locked";
  } catch (const Error& error) {
    return fmt::format("{}: {} | {}", static_cast<int>(error.code()), error.what(), error.hint());
  }
}

std::string NameOf(const std::string& host, pid_t pid, uint64_t born) {
  return fmt::format(R"({{"host":"{}","pid":{},"since":"20261122-101112","born":{},"job":"77"}})",
                     host, pid, born);
}

TEST(RunLock, ASecondRunLearnsWhoHasTheFolder) {
  const fs::path folder = FreshFolder();
  {
    const RunLock lock(folder);
    EXPECT_THAT(TryToLock(folder),
                AllOf(HasSubstr("2: another run writes into " + folder.string()),
                      HasSubstr(fmt::format("process {} on {}, since 2", ::getpid(), HostName())),
                      HasSubstr("choose another --output")));
  }
  EXPECT_FALSE(fs::exists(folder / "run.lock"));
  EXPECT_EQ(TryToLock(folder), "locked");
}

TEST(RunLock, WhetherARunGoesOnIsSeenWithoutTakingTheFolder) {
  const fs::path folder = FreshFolder();
  EXPECT_FALSE(RunGoesOn(folder / "none"));
  EXPECT_FALSE(RunGoesOn(folder));
  {
    const RunLock lock(folder);
    EXPECT_TRUE(RunGoesOn(folder));
  }
  EXPECT_FALSE(RunGoesOn(folder));
  for (const std::string& name :
       {NameOf(HostName(), ::getpid(), 1), std::string("{\"ho"), std::string(90, '\0')}) {
    std::ofstream(folder / "run.lock") << name;  // of a process that was killed
    EXPECT_FALSE(RunGoesOn(folder)) << name;
    EXPECT_EQ(TryToLock(folder), "locked");
  }
}

// Another program's file has this name.
TEST(RunLock, WhatNoRunHasWrittenIsNotWrittenOver) {
  const fs::path folder = FreshFolder();
  Spit(folder / "run.lock", "mine\n");
  EXPECT_EQ(TryToLock(folder), "2: " + (folder / "run.lock").string() +
                                   " was not written by a run, and one in this folder would write "
                                   "over it | choose another --output");
  EXPECT_THROW(RefuseRunThatGoesOn(folder), UsageError);
  EXPECT_EQ(Slurp(folder / "run.lock"), "mine\n");
}

// A user who can read the file can lock it and block the run's next start.  The folder has the mode that other programs
// give it.
TEST(RunLock, NobodyElseMayOpenIt) {
  const fs::path folder = FreshFolder();
  const mode_t before = ::umask(022);
  const RunLock lock(folder);
  const std::string made = MakeOwnFolder(folder / "run");
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "run.lock").permissions(), fs::perms{0600});
  EXPECT_EQ(fs::status(made).permissions(), fs::perms{0755});
}

// An earlier version left this file readable by all, and another user has locked it.
class StrangersLock {
 public:
  StrangersLock(const fs::path& folder, const std::string& content) {
    Spit(folder / "run.lock", content);
    fs::permissions(folder / "run.lock", fs::perms{0644});
    fd_ = ::open((folder / "run.lock").c_str(), O_RDONLY);
    EXPECT_EQ(::flock(fd_, LOCK_SH | LOCK_NB), 0);
  }
  ~StrangersLock() { ::close(fd_); }
  StrangersLock(const StrangersLock&) = delete;

 private:
  int fd_ = -1;
};

TEST(RunLock, AStrangersLockIsNoObstacle) {
  const fs::path folder = FreshFolder();
  // The run was killed.
  const StrangersLock stranger(folder, NameOf(HostName(), ::getpid(), 1));
  const RunLock lock(folder);
  EXPECT_EQ(fs::status(folder / "run.lock").permissions(), fs::perms{0600});
  EXPECT_THAT(TryToLock(folder), HasSubstr(fmt::format("process {} on", ::getpid())));
}

TEST(RunLock, AStrangersLockIsNoObstacleForAJobThatWasStartedAgain) {
  const fs::path folder = FreshFolder();
  const StrangersLock stranger(folder, NameOf("elsewhere", 12, 77));
  EXPECT_THAT(TryToLock(folder), HasSubstr("process 12 on elsewhere"));
  ::setenv("SLURM_JOB_ID", "77", 1);
  EXPECT_EQ(TryToLock(folder), "locked");
  ::unsetenv("SLURM_JOB_ID");
}

TEST(RunLock, IsFreeOnceItsProcessIsKilled) {
  const fs::path folder = FreshFolder();
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(fs::exists(folder / "run.lock"));
  EXPECT_EQ(TryToLock(folder), "locked");
}

TEST(RunLock, MovesWithItsOwner) {
  const fs::path folder = FreshFolder();
  RunLock first(folder);
  const RunLock second = std::move(first);
  EXPECT_THAT(TryToLock(folder), HasSubstr("another run writes into"));
}

// The file system does not support locks.
TEST(RunLock, WithoutLocksTheHolderIsLookedUp) {
  const fs::path folder = FreshFolder();
  {
    const RunLock lock(folder, NoLocks);
    EXPECT_THAT(TryToLock(folder, NoLocks),
                AllOf(HasSubstr(fmt::format("process {} on", ::getpid())),
                      ::testing::Not(HasSubstr("remove"))))
        << "it lives, as can be seen here";
  }
  for (const uint64_t born : {0, 1}) {
    Spit(folder / "run.lock", NameOf(HostName(), ::getpid(), born));
    EXPECT_EQ(TryToLock(folder, NoLocks), "locked") << "the number was another process's before";
  }
  Spit(folder / "run.lock", NameOf(HostName(), 0x7ffffff0, 77));
  EXPECT_EQ(TryToLock(folder, NoLocks), "locked") << "a process that is gone";
  Spit(folder / "run.lock", "{\"host\": ");
  EXPECT_EQ(TryToLock(folder, NoLocks), "locked") << "cut short by a full disk";
  Spit(folder / "run.lock", NameOf("elsewhere", 12, 77));
  EXPECT_THAT(
      TryToLock(folder, NoLocks),
      AllOf(HasSubstr("process 12 on elsewhere, since 20261122-101112"),
            HasSubstr("if that process is gone, remove " + (folder / "run.lock").string())));
}

TEST(RunLock, AJobThatWasStartedAgainElsewhereIsNoObstacle) {
  const fs::path folder = FreshFolder();
  Spit(folder / "run.lock", NameOf("elsewhere", 12, 77));
  ::setenv("SLURM_JOB_ID", "78", 1);
  EXPECT_THAT(TryToLock(folder, NoLocks), HasSubstr("process 12 on elsewhere"));
  ::setenv("SLURM_JOB_ID", "77", 1);
  EXPECT_EQ(TryToLock(folder, NoLocks), "locked");
  ::unsetenv("SLURM_JOB_ID");
}

fs::path removed_once;

// Simulates a holder that removed the file after this process opened it and before it locked it.
int LockOfARemovedFile(int fd, int how) {
  if (!removed_once.empty()) fs::remove(removed_once);
  removed_once.clear();
  return ::flock(fd, how);
}

TEST(RunLock, AFileThatIsRemovedMeanwhileIsNotTheLock) {
  const fs::path folder = FreshFolder();
  removed_once = folder / "run.lock";
  const RunLock lock(folder, LockOfARemovedFile);
  EXPECT_TRUE(fs::exists(folder / "run.lock"));
  EXPECT_THAT(TryToLock(folder), HasSubstr("another run writes into"));
}

// A user removed the file by hand, and another run has taken the folder.
TEST(RunLock, LeavesALockThatIsNotItsOwn) {
  const fs::path folder = FreshFolder();
  std::optional<RunLock> first(folder);
  fs::remove(folder / "run.lock");
  const RunLock second(folder);
  first.reset();
  EXPECT_THAT(TryToLock(folder), HasSubstr("another run writes into"));
}

TEST(RunLock, NobodyIsAskedToRemoveALockThatHolds) {
  const fs::path folder = FreshFolder();
  const RunLock lock(folder);
  Spit(folder / "run.lock", NameOf("elsewhere", 12, 77));
  EXPECT_THAT(TryToLock(folder),
              AllOf(HasSubstr("process 12 on elsewhere"), ::testing::Not(HasSubstr("remove"))));
}

fs::path named_late;
std::thread late_writer;

// Simulates a holder that has locked the file and has not yet written its name.
int HeldAndNamedLater(int, int) {
  late_writer = std::thread([] {
    ::usleep(60'000);
    Spit(named_late, NameOf("elsewhere", 12, 77));
  });
  errno = EWOULDBLOCK;
  return -1;
}

int Held(int, int) {
  errno = EWOULDBLOCK;
  return -1;
}

TEST(RunLock, WaitsAMomentForTheHoldersName) {
  const fs::path folder = FreshFolder();
  named_late = folder / "run.lock";
  EXPECT_THAT(TryToLock(folder, HeldAndNamedLater), HasSubstr("process 12 on elsewhere"));
  late_writer.join();
  fs::remove(folder / "run.lock");
  EXPECT_THAT(TryToLock(folder, Held), HasSubstr("another run writes into " + folder.string() +
                                                 ": another process | wait for it"));
}

// No byte can be added to a file from here on.
TEST(RunLock, ANameThatCannotBeWrittenIsAnError) {
  const fs::path folder = FreshFolder();
  std::string said;
  {
    const FileSizeLimit limit(0);
    said = TryToLock(folder);
  }
  EXPECT_THAT(said, HasSubstr("6: cannot write " + folder.string() + "/run.lock: File too large"));
  EXPECT_EQ(TryToLock(folder), "locked") << "the file was closed";
}

TEST(RunLock, AFolderThatCannotBeWrittenIsNamed) {
  const fs::path folder = FreshFolder();
  fs::create_symlink("/dev/full", folder / "run.lock");
  EXPECT_THAT(TryToLock(folder), HasSubstr("6: cannot open " + folder.string() + "/run.lock"));
}

TEST(MakeOwnFolder, TakesTheNextNameThatIsFree) {
  const std::string wanted = (FreshFolder() / "runs" / "lenet5-20261122").string();
  EXPECT_EQ(MakeOwnFolder(wanted), wanted);
  EXPECT_EQ(MakeOwnFolder(wanted + "/"), wanted + "-2");
  EXPECT_EQ(MakeOwnFolder(wanted), wanted + "-3");
  EXPECT_EQ(OwnFolderName(wanted + "/"), wanted + "-4");
  EXPECT_FALSE(std::filesystem::exists(wanted + "-4"));
  EXPECT_TRUE(fs::is_directory(wanted + "-3"));
}

TEST(MakeOwnFolder, NamesWhatIsInTheWay) {
  const fs::path file = FreshFolder() / "file";
  Spit(file, "in the way");
  EXPECT_THROW(MakeOwnFolder(file / "run"), CheckpointError);
}

}  // namespace
}  // namespace dtrain
