// Finds the ranks of an mpirun on this machine through /proc, even before they write a status record (status_record.h)
// and after they can write no more.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace dtrain {

bool IsAlive(pid_t pid);    // a zombie is not alive
bool IsStopped(pid_t pid);  // stopped by SIGSTOP or the like: it does nothing until it gets SIGCONT
bool Catches(pid_t pid, int signal);  // true if it has a handler for the signal

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
};

// Returns the rank of a process that mpirun or srun launched, from the environment with which it was started.
std::optional<int> RankOf(pid_t pid);

// True if the process is that rank of the launch whose ranks have `mark` ("NAME=value") in their environment.  A
// process number alone proves nothing: a rank of another launch, or any other process, may have it by now.
bool IsRank(pid_t pid, int rank, const std::string& mark);

// Sends `signal` to the process if it is that rank; returns false if it is not.
bool SignalRank(pid_t pid, int rank, const std::string& mark, int signal);

// Returns the exit status of a zombie, a process that has ended and whose parent has not waited for it, as a shell
// reports it.  Returns none for other processes.
std::optional<int> ExitStatusOfZombie(pid_t pid);

// Returns the ranks that `mpirun` has started.  `mpirun` may also be a wrapper, or the launcher's daemon on another
// machine or in a Slurm job.  The ranks are those of its children that are ranks, and of the other children those below
// them.
std::vector<RankProcess> RankProcesses(pid_t mpirun);

// A rank may be stopped for this time if `stall_seconds` is 0.
constexpr double kStoppedSeconds = 60;

// Finds ranks that have been stopped for too long.  Counts consecutive looks, not seconds, so that the time in which
// the watching process was stopped, too (Ctrl-Z and fg for a whole job), does not count.
class StoppedRanks {
 public:
  // `look_seconds` is the time between two looks.  `grace_seconds` is added to the time for which a rank may be
  // stopped.
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
  std::map<int, int> looks_;  // consecutive looks at which the rank was stopped
};

// Records the order in which ranks ended.  When one rank is lost, mpirun ends the others within milliseconds, and a
// periodic look finds all of them gone.  So a thread waits for their ends (pidfd_open(2), Linux 5.3).  On an older
// system the order is unknown.
class DeathOrder {
 public:
  DeathOrder();  // the thread starts with the first rank
  ~DeathOrder();
  DeathOrder(const DeathOrder&) = delete;

  void Watch(int rank, pid_t pid);  // call it once for each rank
  std::vector<int> Ranks() const;   // the ranks that have ended, in that order

 private:
  struct Watched {
    int rank = 0;
    int fd = -1;
  };
  void Wait();

  const int wake_;  // an eventfd: wakes the thread for another rank, or to end
  mutable std::mutex mutex_;
  std::vector<Watched> watched_;
  std::vector<int> ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace dtrain
