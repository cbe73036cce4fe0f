#include "framework/launch/rank_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/runtime/said.h"

namespace dtrain {
namespace {

// A process that claims to be rank 1, or another one, and sleeps for a minute.
class OtherRank {
 public:
  explicit OtherRank(int rank = 1) : rank_(rank), pid_(::fork()) {
    if (pid_ != 0) return;
    char variable[] = "OMPI_COMM_WORLD_RANK=1", sleep[] = "sleep", minute[] = "60";
    variable[sizeof(variable) - 2] = static_cast<char>('0' + rank);
    char* const arguments[] = {sleep, minute, nullptr};
    char* const environment[] = {variable, nullptr};
    ::execve("/bin/sleep", arguments, environment);
    ::_exit(127);
  }
  ~OtherRank() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // Waits until the process has the environment of its rank.
  void AwaitStart() const {
    while (RankOf(pid_) != rank_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  const int rank_;
  const pid_t pid_;
};

TEST(RankWatch, NamesARankThatStaysStopped) {
  const OtherRank other;
  other.AwaitStart();
  Said heard;
  const RankWatch watch(0, ::getpid(), 1, heard.Sink());
  EXPECT_EQ(heard.Within(2), "");
  ::kill(other.pid(), SIGSTOP);
  EXPECT_EQ(heard.Within(10), "rank 1 (pid " + std::to_string(other.pid()) +
                                  ") did not answer: it was stopped and not continued");
}

TEST(RankWatch, ARankThatGoesOnInTimeIsNotLost) {
  const OtherRank other;
  other.AwaitStart();
  Said heard;
  const RankWatch watch(0, ::getpid(), 4, heard.Sink());
  ::kill(other.pid(), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ::kill(other.pid(), SIGCONT);
  EXPECT_EQ(heard.Within(4), "");
}

// The lowest rank that is not stopped prints; here that is rank 1.
TEST(RankWatch, OneOfThemSpeaks) {
  const OtherRank other(1), stopped(2);
  for (const OtherRank* rank : {&other, &stopped}) rank->AwaitStart();
  ::kill(stopped.pid(), SIGSTOP);
  Said heard;
  const RankWatch watch(3, ::getpid(), 0.5, heard.Sink());
  EXPECT_EQ(heard.Within(3), "");
}

}  // namespace
}  // namespace dtrain
