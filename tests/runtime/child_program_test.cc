// Tests that start programs as children, a limited number at a time, and stop them.
#include "framework/launch/child_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "framework/core/error.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

ProgramCommand Shell(const std::string& script, const std::string& log = "") {
  return {"/bin/sh", {"sh", "-c", script}, OwnEnvironment(), log};
}

// Waits for something that another process does.  The minute ends a test that has already failed.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) ::usleep(20'000);
  return condition();
}

TEST(ChildPrograms, RunInTheirOrderSoManyAtATime) {
  const fs::path folder = FreshFolder();
  std::vector<ProgramCommand> commands;
  for (const char* code : {"0", "5", "75", "0"}) {
    commands.push_back(
        Shell(std::string("echo out; echo err >&2; exit ") + code, (folder / code).string()));
  }
  commands.push_back(Shell("kill -KILL $$"));
  for (const int at_once : {1, 2, 9}) {
    std::vector<size_t> started;
    std::vector<int> codes(commands.size(), -1);
    int running = 0, most = 0;
    EXPECT_EQ(RunPrograms(commands, at_once,
                          {.started =
                               [&](size_t command) {
                                 started.push_back(command);
                                 most = std::max(most, ++running);
                               },
                           .ended =
                               [&](size_t command, int code) {
                                 codes[command] = code;
                                 --running;
                               }}),
              0);
    EXPECT_THAT(started, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(codes, ElementsAre(0, 5, 75, 0, 128 + SIGKILL));
    EXPECT_EQ(most, std::min(at_once, 5));
  }
  EXPECT_EQ(Slurp(folder / "5"), "out\nerr\nout\nerr\nout\nerr\n") << "a log is added to";
}

TEST(ChildPrograms, OneThatCannotBeExecutedIsNamed) {
  const fs::path missing = FreshFolder() / "missing";
  ProgramCommand command = Shell("");
  command.path = missing;
  try {
    StartProgram(command, "install it");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot start " + missing.string() + ": No such file"));
    EXPECT_EQ(error.hint(), "install it");
  }
}

TEST(MpirunCommand, RanksOnThisMachineGetNoVariablesOfAnotherJob) {
  const ScopedVariable variables[] = {{"SLURM_JOBID", "7"},
                                      {"SLURM_NODELIST", "a"},
                                      {"SLURM_JOB_ID", "7"},
                                      {"PMI_RANK", "1"},
                                      {"PMIX_RANK", "1"},
                                      {"OMPI_UNIVERSE_SIZE", "4"},
                                      {"OMPI_MCA_ess_base_vpid", "1"},
                                      {"OMPI_MCA_mpi_leave_pinned", "0"},
                                      {"PMIX_MCA_gds", "hash"}};
  const auto names = [](const MpirunOptions& options) {
    std::set<std::string> set;
    for (const std::string& entry : MakeMpirunCommand(options).environment) {
      set.insert(entry.substr(0, entry.find('=')));
    }
    return set;
  };
  const std::set<std::string> here = names({.ranks = 2, .executable = "/bin/true"});
  for (const char* left_out : {"SLURM_JOBID", "SLURM_NODELIST", "PMI_RANK", "PMIX_RANK",
                               "OMPI_UNIVERSE_SIZE", "OMPI_MCA_ess_base_vpid"}) {
    EXPECT_FALSE(here.contains(left_out)) << left_out;
  }
  for (const char* kept : {"SLURM_JOB_ID", "OMPI_MCA_mpi_leave_pinned", "PMIX_MCA_gds", "PATH"}) {
    EXPECT_TRUE(here.contains(kept)) << kept;
  }
  const auto on_hosts = names({.ranks = 2, .executable = "/bin/true", .hosts = {{"a", 2}}});
  EXPECT_TRUE(on_hosts.contains("SLURM_NODELIST")) << "the job's own machines";
}

TEST(MpirunCommand, AProbeStartsTrueAndIsNotQuiet) {
  const ProgramCommand command = MakeMpirunCommand(
      {.ranks = 3, .executable = "/opt/dtrain", .arguments = {"train", "-n", "x"}});
  const ProgramCommand probe = MakeMpirunProbe(command, "/tmp/words.txt");
  EXPECT_THAT(probe.arguments, testing::Not(testing::Contains("--quiet")));
  ASSERT_GE(probe.arguments.size(), 3u);
  EXPECT_THAT(std::vector<std::string>(probe.arguments.end() - 3, probe.arguments.end()),
              ElementsAre("-n", "3", "/bin/true"));
  EXPECT_EQ(probe.log, "/tmp/words.txt");
}

// Other users may know the folder of a log, so a link or a pipe in the log's place is refused.
TEST(ChildPrograms, ALogIsAFile) {
  const fs::path folder = FreshFolder(), pipe = folder / "pipe", link = folder / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Spit(folder / "others", "mine");
  fs::create_symlink("others", link);
  for (const auto& [log, why] :
       std::map<fs::path, std::string>{{folder / "missing/log", "No such file or directory"},
                                       {link, "Too many levels of symbolic links"},
                                       {pipe, "it is a pipe"}}) {
    EXPECT_EQ(WhatOf<RunFileError>([&log = log] { StartProgram(Shell("echo out", log)); }),
              "cannot write " + log.string() + ": " + why);
  }
  EXPECT_EQ(Slurp(folder / "others"), "mine");
}

// A script's background jobs ignore INT, and their children would not hear the stop signal that they are sent.
TEST(ChildPrograms, AChildHearsIntThoughItsParentIgnoresIt) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  int status = 0;
  ASSERT_GT(::waitpid(StartProgram(Shell("kill -INT $$; exit 3")), &status, 0), 0);
  std::signal(SIGINT, before);
  EXPECT_EQ(CodeOfStatus(status), kSignalBase + SIGINT);
}

// The first signal reaches the running child as INT, and the waiting ones are not started; a second signal reaches the
// child too.
TEST(ChildPrograms, AStopSignalReachesThoseThatRun) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const fs::path folder = FreshFolder();
    const std::string log = (folder / "log").string();
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      if (std::freopen((folder / "err").c_str(), "w", stderr) == nullptr) ::_exit(99);
      int code = -1;
      const int stopped =
          RunPrograms({Shell("trap 'echo int; n=1$n; [ $n = 11 ] && exit 75' INT; echo ready; "
                             "while :; do sleep 0.05; done",
                             log),
                       Shell("echo second", log)},
                      1, {.started = [](size_t) {}, .ended = [&](size_t, int c) { code = c; }});
      ::_exit(code == 75 ? stopped : 98);
    }
    EXPECT_TRUE(Eventually([&] { return Slurp(log) == "ready\n"; }));
    ::kill(child, signal);
    EXPECT_TRUE(Eventually([&] { return Slurp(log) == "ready\nint\n"; }));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(CodeOfStatus(status), signal);
    EXPECT_EQ(Slurp(log), "ready\nint\nint\n") << "and no second one";
    EXPECT_THAT(Slurp(folder / "err"), HasSubstr("stopping what runs"));
  }
}

}  // namespace
}  // namespace dtrain
