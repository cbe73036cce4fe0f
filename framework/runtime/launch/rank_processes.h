// The ranks of an mpirun on this machine as the system sees them: also before they can say anything
// (status_record.h), and when they can no more.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace dtrain {

bool IsAlive(pid_t pid);    // a zombie is not
bool IsStopped(pid_t pid);  // by SIGSTOP or the like: it does nothing until somebody lets it go on
bool Catches(pid_t pid, int signal);  // it has a handler for the signal

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
};

// Of a launch by mpirun or srun; by the environment that the process was started with.
std::optional<int> RankOf(pid_t pid);

// True for that rank of the launch whose ranks have `mark` ("NAME=value") in their environment.  A process number alone
// proves nothing: another launch's rank, or anything else, may have it by now.
bool IsRank(pid_t pid, int rank, const std::string& mark);

// Sends `signal` to the process if it is that rank; false where it is not.
bool SignalRank(pid_t pid, int rank, const std::string& mark, int signal);

// What a process ended with that its parent has not asked for yet (a zombie), as a shell has it; none for others.
std::optional<int> ExitStatusOfZombie(pid_t pid);

// Returns the ranks that `mpirun` has started, or what stands in its place on another machine, in a Slurm job or around
// mpirun: its children that are ranks, and those of children that are none.
std::vector<RankProcess> RankProcesses(pid_t mpirun);

// How long a rank may be stopped where `stall_seconds` does not say.
constexpr double kStoppedSeconds = 60;

// Which ranks have been stopped for too long: in a row of looks, not of seconds, so that the time in which
// whoever looks was stopped as well (Ctrl-Z and fg for a whole job) is none.
class StoppedRanks {
 public:
  // `look_seconds`: between two looks.  `grace_seconds`: beyond what a rank may be stopped.
  StoppedRanks(double stall_seconds, double look_seconds, double grace_seconds = 0)
      : looks_max_(static_cast<int>(
            ((stall_seconds > 0 ? stall_seconds : kStoppedSeconds) + grace_seconds) /
            look_seconds)) {}

  bool IsTooLong(int rank, bool is_stopped) {
    int& looks = looks_[rank];
    looks = is_stopped ? looks + 1 : 0;
    return looks > looks_max_;
  }

 private:
  const int looks_max_;
  std::map<int, int> looks_;  // by rank
};

// In which order ranks ended.  When one is lost mpirun ends the others within milliseconds, and whoever
// looks now and then finds all of them gone.  A thread waits for their ends (pidfd_open(2), Linux 5.3);
// on an older system nothing is known.
class DeathOrder {
 public:
  DeathOrder();  // the thread begins with the first rank
  ~DeathOrder();
  DeathOrder(const DeathOrder&) = delete;

  void Watch(int rank, pid_t pid);  // once for each rank
  std::vector<int> Ranks() const;   // that have ended, the first one first

 private:
  struct Watched {
    int rank = 0;
    int fd = -1;
  };
  void Wait();

  const int wake_;  // an eventfd: there is another rank, or the end
  mutable std::mutex mutex_;
  std::vector<Watched> watched_;
  std::vector<int> ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace dtrain
