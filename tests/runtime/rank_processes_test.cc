#include "framework/launch/rank_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dtrain {
namespace {

// Three processes, which would end after a minute, are killed in another order than that of their ranks.
TEST(DeathOrder, IsThatInWhichRanksEnded) {
  DeathOrder deaths;
  std::map<int, pid_t> ranks;
  for (const int rank : {1, 0, 2}) {
    ranks[rank] = ::fork();
    if (ranks[rank] == 0) {
      ::alarm(60);
      while (true) ::pause();
    }
    deaths.Watch(rank, ranks[rank]);
  }
  std::vector<int> expected;
  for (const int rank : {2, 0, 1}) {
    ::kill(ranks[rank], SIGKILL);
    expected.push_back(rank);
    for (int i = 0; i < 1000 && deaths.Ranks() != expected; ++i) ::usleep(10'000);
    ASSERT_EQ(deaths.Ranks(), expected);
  }
  for (const auto& [rank, pid] : ranks) ::waitpid(pid, nullptr, 0);
}

// A sleeping process with this environment.
class Sleeper {
 public:
  explicit Sleeper(std::vector<std::string> environment) : pid_(::fork()) {
    if (pid_ != 0) return;
    std::vector<char*> entries;
    for (std::string& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    std::string name = "sleep", seconds = "60";
    char* const arguments[] = {name.data(), seconds.data(), nullptr};
    ::execve("/bin/sleep", arguments, entries.data());
    ::_exit(127);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) ::usleep(10'000);
  return condition();
}

TEST(SignalRank, ReachesARankOfTheSameLaunchAlone) {
  const std::string mark = "DTRAIN_STATUS_FOLDER=/tmp/dtrain-7-abcdef";
  const Sleeper ours({"A=b", "OMPI_COMM_WORLD_RANK=1", mark});
  const Sleeper of_another({"OMPI_COMM_WORLD_RANK=1", mark + "g"});
  const Sleeper none({"X" + mark, "A=OMPI_COMM_WORLD_RANK=1", mark});
  ASSERT_TRUE(Eventually(
      [&] { return IsRank(ours.pid(), 1, mark) && IsRank(of_another.pid(), 1, mark + "g"); }));
  EXPECT_FALSE(SignalRank(of_another.pid(), 1, mark, SIGKILL));
  EXPECT_FALSE(SignalRank(none.pid(), 1, mark, SIGKILL));
  EXPECT_FALSE(SignalRank(ours.pid(), 2, mark, SIGKILL));
  EXPECT_EQ(ExitStatusOfZombie(ours.pid()), std::nullopt);
  EXPECT_TRUE(SignalRank(ours.pid(), 1, mark, SIGKILL));
  EXPECT_TRUE(Eventually([&] { return !IsAlive(ours.pid()); }));
  EXPECT_EQ(ExitStatusOfZombie(ours.pid()), 128 + SIGKILL);
  EXPECT_FALSE(SignalRank(ours.pid(), 1, mark, SIGKILL)) << "a zombie is no rank any more";
  EXPECT_TRUE(IsAlive(of_another.pid()) && IsAlive(none.pid()));
}

TEST(ExitStatusOfZombie, IsWhatTheProcessLeftWith) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(75);
  EXPECT_TRUE(Eventually([&] { return !IsAlive(pid); }));
  EXPECT_EQ(ExitStatusOfZombie(pid), 75);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(ExitStatusOfZombie(pid), std::nullopt);
}

}  // namespace
}  // namespace dtrain
