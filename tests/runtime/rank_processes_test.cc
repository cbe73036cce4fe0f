#include "framework/runtime/launch/rank_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <map>
#include <set>

#include "framework/core/process.h"
#include "tests/weights/checkpoint_sample.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

pid_t DeadProcess() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

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

TEST(RemoveLeft, TakesFoldersAndMemoryOfDeadProcesses) {
  const fs::path folder = FreshFolder();
  const std::string dead = std::to_string(DeadProcess()), alive = std::to_string(::getpid());
  for (const std::string& pid : {dead, alive}) {
    fs::create_directories(folder / ("dtrain-" + pid + "-aXb3cd") / "sub");
    Spit(folder / ("dtrain." + pid + ".18ab0c.0"), "memory");
  }
  // Of others: a folder where memory would be, and the other way round; what somebody named like it.
  fs::create_directories(folder / ("dtrain." + dead + ".18ab0c.1"));
  Spit(folder / ("dtrain-" + dead + "-file"), "");
  for (const char* ending : {"", ".log", ".18ab0c.0.log", ".18ab0c"}) {
    Spit(folder / ("dtrain." + dead + ending), "");
  }
  RemoveLeftFolders(folder);
  RemoveLeftMemory(folder);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) {
    left.insert(entry.path().filename().string());
  }
  EXPECT_EQ(left, (std::set<std::string>{
                      "dtrain-" + alive + "-aXb3cd", "dtrain." + alive + ".18ab0c.0",
                      "dtrain." + dead + ".18ab0c.1", "dtrain-" + dead + "-file", "dtrain." + dead,
                      "dtrain." + dead + ".log", "dtrain." + dead + ".18ab0c.0.log",
                      "dtrain." + dead + ".18ab0c"}));
}

TEST(RemoveLeftOfOpenMpi, TakesWhatNobodyUses) {
  const fs::path folder = FreshFolder();
  fs::create_directories(folder / "shm");
  const auto segment = [&](const char* name, bool old) {
    const fs::path path = folder / "shm" / name;
    Spit(path, std::string(4096, 'x'));
    const timespec times[2] = {{::time(nullptr) - 100, 0}, {::time(nullptr) - 100, 0}};
    if (old) ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return path;
  };
  const fs::path left = segment("vader_segment.a.0.1", true);
  const fs::path young = segment("vader_segment.a.0.2", false);
  const fs::path used = segment("vader_segment.a.0.3", true);
  const fs::path foreign = segment("something", true);
  const int fd = ::open(used.c_str(), O_RDWR);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::string host = HostName();
  const fs::path session = folder / "tmp" / ("ompi." + host.substr(0, host.find('.')) + ".0");
  const fs::path dead = session / ("pid." + std::to_string(DeadProcess()));
  const fs::path alive = session / ("pid." + std::to_string(::getpid()));
  const fs::path of_other_host = folder / "tmp/ompi.elsewhere.0" / dead.filename();
  for (const fs::path& path : {dead, alive, of_other_host}) fs::create_directories(path / "0");
  RemoveLeftOfOpenMpi(folder / "tmp", folder / "shm");
  for (const fs::path& path : {left, dead}) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : {young, used, foreign, alive, of_other_host}) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
  ::munmap(mapped, 4096);
  ::close(fd);
}

}  // namespace
}  // namespace dtrain
