// Tests that a run leaves other files and users alone, and what other users of the machine can do to it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A listening TCP socket, from /proc/net/tcp or tcp6.
struct Listener {
  std::string inode;
  in_port_t port = 0;
};

std::vector<Listener> ListenersOf(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& fd : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    sockets.insert(fs::read_symlink(fd.path(), gone).string());
  }
  std::vector<Listener> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      if (state != "0A" || !sockets.contains("socket:[" + inode + "]")) continue;
      const auto port = std::stoul(local.substr(local.find(':') + 1), nullptr, 16);
      found.push_back({inode, static_cast<in_port_t>(port)});
    }
  }
  return found;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& thread :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream in(thread.path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

// Sends three bytes of a greeting to each port and keeps the connection.
class Visitor {
 public:
  explicit Visitor(const std::vector<Listener>& listeners) {
    for (const Listener& listener : listeners) Visit(listener.port);
  }
  ~Visitor() {
    for (const int fd : fds_) ::close(fd);
  }
  Visitor(const Visitor&) = delete;

 private:
  void Visit(in_port_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::inet_addr("127.0.0.1");
    place.sin_port = htons(port);
    ::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof(place));
    ::send(fd, "abc", 3, MSG_NOSIGNAL);
    fds_.push_back(fd);
  }
  std::vector<int> fds_;
};

class OtherUsers : public SystemTest {
 protected:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{
      300};  // for steps that take seconds, or a minute with sanitizers

  void TearDown() override {
    if (run_ > 0) ::kill(run_, SIGTERM);  // the test failed before the run's end
    if (run_ > 0) CodeOf(run_);
    SystemTest::TearDown();
  }

  // Starts a run with two workers in $OUT/run, as a child of the test.  It chooses its own transport.
  pid_t Start(const std::string& options) {
    const std::string command = "export OUT='" + folder_.string() + "' CONFIGS='" + Configs() +
                                "/runs'; cd \"$OUT\"; unset OMPI_MCA_btl; exec " + Program() + " " +
                                kSmall + "--workers 2 --output $OUT/run " + options +
                                " >\"$OUT/out\" 2>\"$OUT/err\"";
    run_ = ::fork();
    if (run_ != 0) return run_;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  // Returns the exit code; kills a run that does not end, with its children.
  int CodeOf(pid_t child) {
    int status = 0;
    const auto deadline = Clock::now() + kLongest;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) ::kill(child, SIGKILL);
      ::usleep(20'000);
    }
    run_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Waits until the ranks train.
  ::testing::AssertionResult AwaitSteps(pid_t run) const {
    const auto deadline = Clock::now() + kLongest;
    while (Slurp(folder_ / "run/metrics.jsonl").find("\"step\"") == std::string::npos) {
      siginfo_t info = {};
      ::waitid(P_PID, static_cast<id_t>(run), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid != 0) return NoSteps("the run ended before its first step");
      if (Clock::now() > deadline) return NoSteps("there is no step after five minutes");
      ::usleep(20'000);
    }
    return ::testing::AssertionSuccess();
  }

 private:
  ::testing::AssertionResult NoSteps(const char* why) const {
    return ::testing::AssertionFailure() << why << ": " << Slurp(folder_ / "err");
  }
  pid_t run_ = 0;  // the run that has not been waited for
};

// Open MPI takes five megabytes of shared memory for each of two ranks; without them it would use TCP.
bool SharedMemoryHasRoom() {
  struct statvfs disk = {};
  return ::statvfs("/dev/shm", &disk) == 0 && disk.f_bavail * disk.f_frsize >= 10 << 20;
}

// The run's folder has a name like those of the program's own temporary folders.
TEST_F(OtherUsers, ARunInTheFolderForTemporaryFilesIsNotRemoved) {
  fs::create_directories(folder_ / "tmp");
  const std::string train =
      std::string(kSmall) + "--workers 2 --output $OUT/tmp/dtrain-2026-11-26 --resume auto ";
  const std::string before = "TMPDIR=$OUT/tmp";
  EXPECT_EQ(Run(train + "--set epochs=1", before).code, 0);
  std::ofstream(folder_ / "tmp/dtrain-2026-11-26/notes.txt") << "mine";
  const Outcome resumed = Run(train, before);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed after step"));
  EXPECT_EQ(Slurp(folder_ / "tmp/dtrain-2026-11-26/notes.txt"), "mine");
  EXPECT_EQ(Run(std::string(kSmall) + "--workers 2 --output $OUT/other", before).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "tmp/dtrain-2026-11-26/summary.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "tmp"), fs::directory_iterator()), 1)
      << "only that";
}

TEST_F(OtherUsers, NoRankOfOneMachineWaitsForConnections) {
  if (!SharedMemoryHasRoom()) GTEST_SKIP() << "less than 10 MB are free in /dev/shm";
  const pid_t run = Start("--set epochs=100000");
  ASSERT_TRUE(AwaitSteps(run));
  const std::vector<pid_t> mpirun = ChildrenOf(run);
  ASSERT_EQ(mpirun.size(), 1u);
  const std::vector<pid_t> ranks = ChildrenOf(mpirun[0]);
  EXPECT_EQ(ranks.size(), 2u);
  EXPECT_GT(ListenersOf(mpirun[0]).size(), 0u) << "such sockets are not seen here";
  for (const pid_t rank : ranks) EXPECT_EQ(ListenersOf(rank).size(), 0u);
  ::kill(run, SIGTERM);
  EXPECT_EQ(CodeOf(run), 75) << Slurp(folder_ / "err");
}

TEST_F(OtherUsers, WhoConnectsToMpirunHoldsUpNeitherTheEndNorAStop) {
  for (const bool stops : {true, false}) {
    fs::remove_all(folder_ / "run");
    const pid_t run = Start(stops ? "--set epochs=100000" : "--set epochs=30");
    ASSERT_TRUE(AwaitSteps(run));
    const std::vector<pid_t> mpirun = ChildrenOf(run);
    ASSERT_EQ(mpirun.size(), 1u);
    const std::vector<Listener> listeners = ListenersOf(mpirun[0]);
    ASSERT_GT(listeners.size(), 0u);
    const Visitor visitor(listeners);
    if (stops) ::kill(run, SIGTERM);
    EXPECT_EQ(CodeOf(run), stops ? 75 : 0) << Slurp(folder_ / "err");
  }
}

TEST_F(OtherUsers, TooFewOpenFilesAreSaidBeforeAnythingStarts) {
  const std::string train = std::string(kSmall) + "--set epochs=1 --workers 3 ";
  const Outcome raised = Run(train + "--output $OUT/raised", "ulimit -S -n 32;");
  EXPECT_EQ(raised.code, 0) << raised.err;
  const Outcome refused = Run(train + "--output $OUT/refused", "ulimit -n 32;");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("mpirun needs 48 open files for these ranks, and this process "
                                     "may have 32"));
  EXPECT_FALSE(fs::exists(folder_ / "refused"));
}

// The user has a config in the run's future folder.
TEST_F(OtherUsers, AConfigInTheRunFolderIsNotWrittenOver) {
  fs::create_directories(folder_ / "mine");
  const std::string config = "# my notes\nmodel: lenet5\ndata: {name: digits}\n";
  std::ofstream(folder_ / "mine/config.yaml") << config;
  for (const char* resume : {"none", "auto"}) {
    const Outcome refused =
        Run(std::string("train --config mine/config.yaml --output mine --resume ") + resume);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("mine/config.yaml was not written by a run"),
                                   HasSubstr("choose another --output")));
  }
  EXPECT_EQ(Slurp(folder_ / "mine/config.yaml"), config);
}

TEST_F(OtherUsers, LinesThatNoSweepHasWrittenAreNotWrittenOver) {
  fs::create_directories(folder_ / "rates");
  std::ofstream(folder_ / "rates/sweep.jsonl") << "mine\n";
  const std::string sweep =
      "sweep --config $CONFIGS/quickstart.yaml --set data.train_samples=100 "
      "--set data.test_samples=100 --set epochs=1 --set seed=1,2 --output rates";
  const Outcome refused = Run(sweep);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("rates/sweep.jsonl was not written by a sweep"));
  EXPECT_EQ(Slurp(folder_ / "rates/sweep.jsonl"), "mine\n");
  fs::remove(folder_ / "rates/sweep.jsonl");
  for (int start = 0; start < 2; ++start) EXPECT_EQ(Run(sweep).code, 0);
}

// A run must not write into another run's checkpoints.
TEST_F(OtherUsers, AResumeFromElsewhereDoesNotRemoveARunsCheckpoints) {
  ASSERT_EQ(Run(std::string(kSmall) + "--output $OUT/a --set epochs=1").code, 0);
  ASSERT_EQ(Run(std::string(kSmall) + "--output $OUT/b").code, 0);
  std::set<fs::path> before;
  for (const auto& file : fs::directory_iterator(folder_ / "b/checkpoints")) before.insert(file);
  const Outcome refused = Run(std::string(kSmall) + "--output $OUT/b --resume $OUT/a");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("b holds the checkpoints of an earlier run"));
  std::set<fs::path> after;
  for (const auto& file : fs::directory_iterator(folder_ / "b/checkpoints")) after.insert(file);
  EXPECT_EQ(after, before);
  EXPECT_EQ(Run(std::string(kSmall) + "--output $OUT/c --resume $OUT/a").code, 0);
}

}  // namespace
}  // namespace dtrain
