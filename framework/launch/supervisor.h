// The supervisor: `--workers N` outside an MPI launch starts N ranks of this program.
//
// It runs mpirun in a process group of its own, with the flags that a laptop or a root container needs, and passes
// stdout and stderr on.  INT and TERM become USR1 for the ranks (finish the step, write a checkpoint, exit 75), since
// mpirun itself would kill them within two seconds.  A second INT or TERM kills all at once.  If the supervisor dies,
// even by kill -9, mpirun and the ranks die, too.  One line reports how the run ended, from mpirun's exit status and
// the ranks' status records.
//
// mpirun sometimes hangs (listeners.h tells how).  So nothing that matters depends on it: the supervisor sends signals
// to the ranks of this machine itself and sees how they end.  Their status records count, and an mpirun that does not
// end after its ranks is killed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/launch/hosts.h"
#include "framework/launch/status_record.h"

namespace dtrain {

struct SupervisorOptions {
  int ranks = 1;  // workers and servers
  // Arguments of the ranks, without the program's name.  With restarts they must give the run folder (--output) in
  // full, since a folder named after the time would be another one at each start.
  std::vector<std::string> arguments;
  // Restarts after a lost rank (exit codes 4 and 128+n), with --resume auto.
  int max_restarts = 0;
  // A rank that is stopped for so long counts as lost; 0: a minute.
  double stall_seconds = 0;
  std::string executable;  // empty: this program
  // They are filled with ranks one after the other; the caller has checked them (CheckHosts).  Empty: this machine
  // alone.
  std::vector<HostSlots> hosts;
  // Returns the newest checkpoint's name, "" if there is none yet.
  std::function<std::string()> newest_checkpoint = {};
  std::string resume = "--resume auto";  // the options that continue the run; shown to the user
};

// Returns the exit code of the run (README, "Exit codes").  Call it before other threads start.  Throws UsageError if
// mpirun cannot be started.
int Supervise(const SupervisorOptions& options);

// Describes the end of a job, as the supervisor saw it.
struct JobEnd {
  int exit_status = 0;            // mpirun's, as a shell reports it (128+n if signal n killed it)
  std::vector<RankStatus> ranks;  // the last records
  // Names the first rank whose process vanished without writing its exit code.
  std::optional<int> first_lost;
  int stop_signal = 0;         // INT or TERM that the supervisor received
  bool killed = false;         // killed by a second signal
  std::optional<int> stopped;  // the rank that was stopped (SIGSTOP), for which all were killed
  int mpirun_signal = 0;       // the signal that killed mpirun, unless this process sent it
  // mpirun did not end after its ranks had ended or were lost, and was killed
  bool mpirun_hung = false;
  bool all_said = false;  // every rank's record has its exit code
  // Holds the exit status of first_lost as a shell reports it, if mpirun had not yet waited for it.
  std::optional<int> lost_status;
  bool never_began = false;  // the stop came before any rank had begun, and all were killed
  std::string words = {};    // mpirun's own, indented lines, if no rank has lived
};

// Holds the line that reports the end to the user, and the exit code.
struct Verdict {
  int exit_code = 0;
  std::string line;        // empty if the run succeeded
  bool rank_lost = false;  // a restart may help
};

Verdict ClassifyExit(const JobEnd& end, const std::string& resume = "--resume auto");

// Returns "stopped after step 815; go on with --resume auto".
std::string StoppedText(int64_t step, const std::string& resume);

// Returns `arguments` with any --resume replaced by `--resume auto`.
std::vector<std::string> WithResumeAuto(const std::vector<std::string>& arguments);

}  // namespace dtrain
