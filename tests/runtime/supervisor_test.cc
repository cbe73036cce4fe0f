#include "framework/launch/supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "framework/core/error.h"
#include "framework/launch/child_program.h"
#include "framework/launch/stop_signal.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/runtime/doors.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kFakeRank[] = DTRAIN_BINARY_DIR "/fake_rank";

std::vector<std::string> Lines(const fs::path& path) {
  std::istringstream in(Slurp(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Waits for something that another process does.  The minute ends a test that has already failed.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) ::usleep(20'000);
  return condition();
}

bool IsGone(pid_t pid) {
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  return Slurp("/proc/" + std::to_string(pid) + "/stat").find(") Z ") != std::string::npos;
}

pid_t ParentOf(pid_t pid) {
  const std::string stat =
      Slurp("/proc/" + std::to_string(pid) + "/stat");  // "pid (name) S parent"
  return std::stoi(stat.substr(stat.rfind(") ") + 4));
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorOptions Options(const std::string& behaviour, int restarts = 0) {
    return {.ranks = 2,
            .arguments = {folder_.string(), behaviour},
            .max_restarts = restarts,
            .executable = kFakeRank};
  }

  // Runs the supervisor in this process and keeps its output.
  int Run(const SupervisorOptions& options) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    const int code = Supervise(options);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  // Runs it in a process group of its own, so that the test can send signals, and returns when all ranks run.
  pid_t Start(const std::string& behaviour) { return Start(Options(behaviour)); }
  pid_t Start(const SupervisorOptions& options) {
    const pid_t child = Launch(options);
    EXPECT_TRUE(Eventually([&] { return Pids().size() == 2; })) << "the ranks did not start";
    return child;
  }
  pid_t Launch(const SupervisorOptions& options) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::signal(SIGHUP, SIG_DFL);  // needed if the tests run under nohup
      if (std::freopen((folder_ / "err").c_str(), "w", stderr) == nullptr) ::_exit(99);
      ::_exit(Supervise(options));
    }
    return child;
  }

  int CodeOf(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  std::vector<pid_t> Pids() const {
    std::vector<pid_t> pids;
    for (const std::string& line : Lines(folder_ / "pids")) pids.push_back(std::stoi(line));
    return pids;
  }

  void ExpectRanksGone() {
    for (const pid_t pid : Pids()) {
      EXPECT_TRUE(Eventually([&] { return IsGone(pid); }))
          << "rank with pid " << pid << " lives on";
    }
  }

  // Puts this script first in PATH as mpirun.
  void UseMpirun(const std::string& script) {
    Spit(folder_ / "mpirun", script);
    fs::permissions(folder_ / "mpirun", fs::perms::owner_all);
    ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  fs::path folder_ = FreshFolder();
  const std::string path_ = std::getenv("PATH");
  std::string out_, err_;
};

// This mpirun starts its ranks, ignores signals and the ranks' end, and never ends.
constexpr char kHangingMpirun[] = R"(#!/bin/sh
while [ "$1" != -n ]; do shift; done
ranks=$2
shift 2
export FAKE_RANK_ALONE=yes
rank=0
while [ $rank -lt $ranks ]; do
  OMPI_COMM_WORLD_RANK=$rank "$@" &
  rank=$((rank + 1))
done
trap '' INT TERM USR1
exec sleep 100
)";

TEST_F(SupervisorTest, RunsTheRanksAndPassesTheirOutputOn) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  EXPECT_EQ(Run(Options("succeed")), 0);
  EXPECT_THAT(out_, HasSubstr("rank 0 of 2\n"));
  EXPECT_THAT(out_, HasSubstr("rank 1 of 2\n"));
  EXPECT_EQ(err_, "");
  EXPECT_EQ(Lines(folder_ / "progress"), std::vector<std::string>{"0"}) << "a file is no terminal";
  EXPECT_EQ(open_files(), before);
}

TEST(MpirunCommand, TheEnvironmentIsOursAndWhatTheUserSaysStays) {
  const std::string yield = "OMPI_MCA_mpi_yield_when_idle";
  const char* const said = std::getenv(yield.c_str());
  const std::string before = said == nullptr ? "" : said;
  const auto entries = [&](bool terminal) {
    std::vector<std::string> found;
    const auto command = MakeMpirunCommand({.ranks = 2,
                                            .executable = "x",
                                            .arguments = {},
                                            .status_folder = "/folder",
                                            .err = terminal ? STDERR_FILENO : -1});
    for (const std::string& entry : command.environment) {
      if (entry.starts_with(yield) || entry.starts_with("DTRAIN_PROGRESS")) found.push_back(entry);
    }
    return found;
  };
  ::unsetenv(yield.c_str());
  EXPECT_EQ(entries(true), (std::vector<std::string>{yield + "=1", "DTRAIN_PROGRESS=1"}));
  ::setenv(yield.c_str(), "0", 1);
  EXPECT_EQ(entries(false), (std::vector<std::string>{yield + "=0", "DTRAIN_PROGRESS=0"}));
  ::unsetenv(yield.c_str());
  if (said != nullptr) ::setenv(yield.c_str(), before.c_str(), 1);
}

// mpirun's daemons must detect a cut link within a minute, not after the system's two hours.
TEST(MpirunCommand, ItsConnectionsAreKeptAlive) {
  const auto command = MakeMpirunCommand(
      {.ranks = 2, .executable = "x", .arguments = {}, .status_folder = "/folder"});
  for (const std::string entry : {"time=20", "intvl=5", "probes=4"}) {
    EXPECT_THAT(command.environment, testing::Contains("OMPI_MCA_oob_tcp_keepalive_" + entry));
  }
}

// With TCP every rank would listen on every address; several machines have no other way.
TEST(MpirunCommand, OnOneMachineRanksTalkThroughSharedMemoryAlone) {
  const std::string choice = "OMPI_MCA_btl=self,vader";
  MpirunOptions options = {
      .ranks = 2, .executable = "x", .arguments = {}, .status_folder = "/folder"};
  const auto makes = [&] { return MakeMpirunCommand(options).environment; };
  EXPECT_THAT(makes(), Not(testing::Contains(choice))) << "there is no folder for it";
  options.shared_memory = "/dev/shm";
  EXPECT_THAT(makes(), testing::Contains(choice));
  EXPECT_THAT(MakeMpirunCommand(options).arguments, testing::Contains("localhost:2"));
  options.shared_memory = "/proc";
  EXPECT_THAT(makes(), Not(testing::Contains(choice))) << "there is no room";
  options = {.ranks = 2,
             .executable = "x",
             .arguments = {},
             .hosts = {{"a", 2}},
             .status_folder = "/folder"};
  EXPECT_THAT(makes(), Not(testing::Contains(choice)));
}

TEST_F(SupervisorTest, StopsNobodyUnasked) {
  EXPECT_EQ(Run(Options("train-briefly")), 0);
  EXPECT_EQ(err_, "");
}

TEST_F(SupervisorTest, AFailingRankGivesItsCodeAndReason) {
  EXPECT_EQ(Run(Options("diverge", /*restarts=*/2)), 5);
  EXPECT_THAT(err_, HasSubstr("rank 1 ("));
  EXPECT_THAT(err_, HasSubstr("ended with exit code 5 after step 7: loss is nan"));
  EXPECT_EQ(Lines(folder_ / "starts").size(), 1U) << "a divergence is no reason to restart";
}

TEST_F(SupervisorTest, AKilledRankIsNamed) {
  EXPECT_EQ(Run(Options("killed")), 137);
  EXPECT_THAT(err_, HasSubstr("rank 1 ("));
  EXPECT_THAT(err_, HasSubstr("was killed by signal 9 (Killed) after step 815, training"));
  ExpectRanksGone();
}

TEST_F(SupervisorTest, ALostRunSaysHowItGoesOnWhereItCan) {
  SupervisorOptions options = Options("killed");
  std::string newest;
  options.newest_checkpoint = [&newest] { return newest; };
  Run(options);
  EXPECT_THAT(err_, Not(HasSubstr("--resume"))) << "there is no checkpoint";
  newest = "step-00001832.h5";
  options.resume = "--resume auto --output x";
  Run(options);
  EXPECT_THAT(err_, HasSubstr("error   go on from step-00001832.h5 with --resume auto --output x; "
                              "with --max-restarts N lost ranks are started again up to N times"));
  options.max_restarts = 1;
  Run(options);
  EXPECT_THAT(err_, HasSubstr("  go on from step-00001832.h5 with --resume auto --output x\n"));
  options.arguments.back() = "diverge";
  Run(options);
  EXPECT_THAT(err_, Not(HasSubstr("go on"))) << "it would diverge again";
}

TEST_F(SupervisorTest, RestartsAfterALossAndResumes) {
  EXPECT_EQ(Run(Options("killed-once", /*restarts=*/3)), 0);
  EXPECT_THAT(err_, HasSubstr("restart 1 of 3, with --resume auto"));
  EXPECT_THAT(err_, Not(HasSubstr("restart 2")));
  EXPECT_THAT(Lines(folder_ / "starts"), testing::ElementsAre("fresh", "resumed"));
}

// The run may have started from another run's checkpoint, which --resume auto would not find.
TEST_F(SupervisorTest, RestartsAsItWasStartedUntilThereIsACheckpoint) {
  SupervisorOptions options = Options("killed-once", /*restarts=*/1);
  options.newest_checkpoint = [] { return ""; };
  EXPECT_EQ(Run(options), 137);
  EXPECT_THAT(err_, HasSubstr("restart 1 of 1, from its start: there is no checkpoint yet"));
  EXPECT_THAT(Lines(folder_ / "starts"), testing::ElementsAre("fresh", "fresh"));
}

TEST_F(SupervisorTest, GivesUpWhenTheRestartsAreUsed) {
  EXPECT_EQ(Run(Options("killed", /*restarts=*/1)), 137);
  EXPECT_EQ(Lines(folder_ / "starts").size(), 2U);
}

// A terminal sends its signals to the whole process group; mpirun is in another group.
TEST_F(SupervisorTest, InterruptAndTerminateAskForACheckpoint) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    fs::remove(folder_ / "pids");
    const pid_t supervisor = Start("train");
    ::kill(-supervisor, signal);
    EXPECT_EQ(CodeOf(supervisor), 75);
    EXPECT_THAT(Slurp(folder_ / "err"), HasSubstr("go on with --resume auto"));
  }
}

// The disk is full where the ranks would write their records.
TEST_F(SupervisorTest, AStopReachesRanksWithoutRecords) {
  const auto expect_a_checkpoint = [&] {
    fs::remove(folder_ / "pids");
    const pid_t supervisor = Start("train-silently");
    ::kill(supervisor, SIGTERM);
    EXPECT_EQ(CodeOf(supervisor), 75);
    EXPECT_THAT(Slurp(folder_ / "err"), Not(HasSubstr("before any rank had begun")));
    ExpectRanksGone();
  };
  expect_a_checkpoint();
  UseMpirun(
      "#!/bin/sh\nPATH=${PATH#*:}\nmpirun \"$@\"\n");  // its ranks are no children of this one
  expect_a_checkpoint();
}

// A filter on a socket applies to all processes that share it.
TEST_F(SupervisorTest, SocketsOfOthersThatMpirunHasInheritedStayOpen) {
  const Door door("127.0.0.1", /*flags=*/0);
  EXPECT_EQ(Run(Options("train-briefly")), 0);
  EXPECT_TRUE(Visitor(door).IsIn());
}

TEST_F(SupervisorTest, ASecondInterruptLeavesAtOnce) {
  const pid_t supervisor = Start("deaf");
  ::kill(supervisor, SIGINT);
  EXPECT_TRUE(
      Eventually([&] { return Slurp(folder_ / "err").find("stopping") != std::string::npos; }));
  ::usleep(static_cast<useconds_t>(1.2e6 * ToSeconds(kOneRequest)));
  ::kill(supervisor, SIGINT);
  EXPECT_EQ(CodeOf(supervisor), 130);
  ExpectRanksGone();
}

// timeout(1) signals the program, then its process group.
TEST_F(SupervisorTest, ASignalThatComesTwiceAtOnceIsOneRequest) {
  const pid_t supervisor = Start("train");
  ::kill(supervisor, SIGTERM);
  EXPECT_TRUE(
      Eventually([&] { return Slurp(folder_ / "err").find("stopping") != std::string::npos; }));
  ::kill(-supervisor, SIGTERM);
  EXPECT_EQ(CodeOf(supervisor), 75);
}

TEST_F(SupervisorTest, RanksDoNotOutliveAKilledSupervisor) {
  const pid_t supervisor = Start("deaf");
  ::kill(supervisor, SIGKILL);
  CodeOf(supervisor);
  ExpectRanksGone();
}

TEST_F(SupervisorTest, AnMpirunThatHangsBehindItsRanksChangesNothing) {
  UseMpirun(kHangingMpirun);
  EXPECT_EQ(Run(Options("succeed")), 0);
  EXPECT_THAT(err_, HasSubstr("mpirun did not end with its ranks, and is killed"));
  fs::remove(folder_ / "pids");
  EXPECT_EQ(Run(Options("diverge")), 5);
  EXPECT_THAT(err_, HasSubstr("ended with exit code 5 after step 7: loss is nan"));
  ExpectRanksGone();
}

TEST_F(SupervisorTest, AStopReachesTheRanksWithoutMpirun) {
  UseMpirun(kHangingMpirun);
  const pid_t supervisor = Start("train");
  ::kill(supervisor, SIGTERM);
  EXPECT_EQ(CodeOf(supervisor), 75);
  EXPECT_THAT(Slurp(folder_ / "err"), HasSubstr("go on with --resume auto"));
  ExpectRanksGone();
}

TEST_F(SupervisorTest, AKilledRankIsReportedThoughMpirunHangs) {
  UseMpirun(kHangingMpirun);
  EXPECT_EQ(Run(Options("killed")), 137);
  EXPECT_THAT(err_, HasSubstr("was killed by signal 9 (Killed) after step 815, training"));
  ExpectRanksGone();
}

TEST_F(SupervisorTest, AStopEndsAStartThatHangs) {
  UseMpirun("#!/bin/sh\ntrap '' INT TERM USR1\n: >'" + (folder_ / "started").string() +
            "'\nexec sleep 100\n");
  const pid_t supervisor = Launch(Options("train"));
  EXPECT_TRUE(Eventually([&] { return fs::exists(folder_ / "started"); }));
  ::kill(supervisor, SIGTERM);
  EXPECT_EQ(CodeOf(supervisor), 75);
  EXPECT_THAT(Slurp(folder_ / "err"), HasSubstr("stopped before any rank had begun"));
}

// mpirun would reach this limit in the middle of the start.
TEST_F(SupervisorTest, OpenFilesAreAllowedAsFarAsTheHardLimitGoes) {
  const auto code_with = [&](rlim_t soft, rlim_t hard) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit limit = {soft, hard};
      if (std::freopen((folder_ / "err").c_str(), "w", stderr) == nullptr ||
          ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        ::_exit(99);
      }
      try {
        ::_exit(Supervise(Options("succeed")));
      } catch (const UsageError& error) {
        std::fprintf(stderr, "%s | %s\n", error.what(), error.hint().c_str());
        std::fflush(stderr);
        ::_exit(2);
      }
    }
    return CodeOf(child);
  };
  EXPECT_EQ(code_with(32, 256), 0) << Slurp(folder_ / "err");
  EXPECT_EQ(code_with(32, 40), 2);
  EXPECT_EQ(Slurp(folder_ / "err"),
            "mpirun needs 48 open files for these ranks, and this process may have 40 | raise the "
            "limit (`ulimit -n 48`), or start fewer workers\n");
}

TEST_F(SupervisorTest, NoMpirunIsAUsageError) {
  ::setenv("PATH", (folder_ / "missing").c_str(), 1);
  try {
    Supervise(Options("succeed"));
    ADD_FAILURE() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "several workers need mpirun, and PATH has none");
    EXPECT_EQ(error.hint(), "install Open MPI (Debian: openmpi-bin), or run with --workers 1");
  }
}

TEST_F(SupervisorTest, AnMpirunThatIsKilledGivesTheCodeOfItsSignal) {
  UseMpirun("#!/bin/sh\nkill -9 $$\n");
  EXPECT_EQ(Run(Options("succeed")), 137);
  EXPECT_THAT(err_, HasSubstr("killed by signal 9 (Killed)"));
}

TEST_F(SupervisorTest, AnMpirunThatCannotRunIsAUsageError) {
  UseMpirun("#!/nowhere/interpreter\n");
  try {
    Supervise(Options("succeed"));
    ADD_FAILURE() << "no error";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              "cannot start " + (folder_ / "mpirun").string() + ": No such file or directory");
  }
}

TEST(MpirunCommand, AColonIsNoBeginOfAnotherProgram) {
  const auto command = MakeMpirunCommand({.ranks = 2,
                                          .executable = "x",
                                          .arguments = {"train", "--output", ":", "--set", "a=:"},
                                          .status_folder = "/folder"});
  EXPECT_THAT(command.arguments, testing::IsSupersetOf({"--output=:", "a=:"}));
  EXPECT_THAT(command.arguments, testing::Not(testing::Contains(":")));
}

// Of two ranks, the first to start is stopped: with a record of its own, without one, and after its final record.
TEST_F(SupervisorTest, AStoppedRankEndsTheRunAndIsNamed) {
  for (const std::string behaviour : {"train", "silent", "on-its-way-out"}) {
    fs::remove(folder_ / "pids");
    SupervisorOptions options = Options(behaviour);
    options.stall_seconds = 1;
    const pid_t supervisor = Start(options);
    ::kill(Pids()[0], SIGSTOP);
    EXPECT_EQ(CodeOf(supervisor), 7) << behaviour;
    EXPECT_THAT(Slurp(folder_ / "err"),
                testing::AllOf(HasSubstr(", pid " + std::to_string(Pids()[0]) + ") did not answer"),
                               HasSubstr("it was stopped")));
    ExpectRanksGone();
  }
}

// Time in which the supervisor itself did not run does not count.
TEST_F(SupervisorTest, ARankThatGoesOnInTimeIsNotLost) {
  SupervisorOptions options = Options("train-briefly");
  options.stall_seconds = 20;
  const pid_t supervisor = Start(options);
  ::kill(Pids()[0], SIGSTOP);
  ::usleep(1'500'000);
  ::kill(Pids()[0], SIGCONT);
  EXPECT_EQ(CodeOf(supervisor), 0) << Slurp(folder_ / "err");
}

TEST_F(SupervisorTest, WhenMpirunIsKilledNoRankStays) {
  const pid_t supervisor = Start("deaf");
  const auto mpirun = ParentOf(Pids()[0]);
  ::kill(mpirun, SIGKILL);
  EXPECT_EQ(CodeOf(supervisor), 137);
  EXPECT_THAT(Slurp(folder_ / "err"), HasSubstr("mpirun was killed by signal 9 (Killed)"));
  ExpectRanksGone();
}

TEST_F(SupervisorTest, NothingStaysInTheFoldersForTemporaryFiles) {
  const auto count = [](const fs::path& folder, const std::string& begin) {
    int found = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      found += entry.path().filename().string().starts_with(begin) ? 1 : 0;
    }
    return found;
  };
  fs::create_directories(folder_ / "tmp");
  ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
  const std::string ours = "dtrain-" + std::to_string(::getpid()) + "-";
  EXPECT_EQ(Run(Options("killed")), 137);
  EXPECT_EQ(count(folder_ / "tmp", ""), 0);
  EXPECT_EQ(count("/dev/shm", ours), 0);
  // The next supervisor removes what a killed one left.
  fs::remove(folder_ / "pids");
  const pid_t supervisor = Start("deaf");
  ::kill(supervisor, SIGKILL);
  CodeOf(supervisor);
  ExpectRanksGone();
  EXPECT_EQ(count(folder_ / "tmp", "dtrain-"), 1);
  fs::create_directories(folder_ / "tmp" / fmt::format("dtrain-{}-myOwn1", supervisor));
  fs::create_directories(folder_ / "tmp/dtrain-2026-11-26");
  EXPECT_EQ(Run(Options("succeed")), 0);
  EXPECT_EQ(count(folder_ / "tmp", "dtrain-"), 2) << "somebody's own folders are left alone";
  EXPECT_EQ(count("/dev/shm", "dtrain-" + std::to_string(supervisor)), 0);
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace dtrain
