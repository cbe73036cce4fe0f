#include "framework/runtime/launch/rank_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <vector>

namespace dtrain {
namespace {

// Three that would pause for a minute end as they are told; the numbers of the ranks are in no order.
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

}  // namespace
}  // namespace dtrain
