// The supervisor: `--workers N` outside an MPI launch starts N ranks of this program by itself.
//
// It runs mpirun in a process group of its own, with the flags that a laptop or a root container
// needs, and passes stdout and stderr through.  INT and TERM become USR1 for the ranks (finish the
// step, checkpoint, exit 75), since mpirun itself would kill them within two seconds; a second one
// kills all at once.  When the supervisor dies, even by kill -9, so do mpirun and the ranks.  The
// end is told in one line, from mpirun's exit status and the ranks' status records.
//
// mpirun has been seen to hang (listeners.h says how).  Nothing that matters waits for it: the ranks of this machine
// get their signals from the supervisor, which sees by itself how they end; what they have said counts, and an mpirun
// that goes on without them is killed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/runtime/launch/hosts.h"
#include "framework/runtime/launch/status_record.h"

namespace dtrain {

struct SupervisorOptions {
  int ranks = 1;                       // workers and servers
  std::vector<std::string> arguments;  // of the ranks, without the program's name.  With restarts
                                       // they must name the run folder (--output) in full: a folder
                                       // named after the time would be another one each time.
  int max_restarts = 0;                // after a lost rank (exit codes 4 and 128+n), with
                                       // --resume auto
  double stall_seconds = 0;            // a rank that is stopped for so long is lost; 0: a minute
  std::string executable;              // empty: this program
  std::vector<HostSlots> hosts;  // that the ranks fill one after the other, and that have been
                                 // asked (CheckHosts); empty: this machine alone
  std::function<std::string()> newest_checkpoint = {};  // its name, "" where there is none yet
  std::string resume = "--resume auto";  // the options with which the user's command goes on
};

// Returns the exit code of the run (README, "Exit codes").  Call it before other threads start.
// Throws UsageError when mpirun cannot be started.
int Supervise(const SupervisorOptions& options);

// How the job ended, as the supervisor saw it.
struct JobEnd {
  int exit_status = 0;            // mpirun's, as a shell has it (128+n when a signal killed it)
  std::vector<RankStatus> ranks;  // last records
  std::optional<int> first_lost;  // the rank whose process vanished first without a last word
  int stop_signal = 0;            // INT or TERM that the supervisor received
  bool killed = false;            // by a second one
  std::optional<int> stopped;     // the rank that did nothing (SIGSTOP), for which all were killed
  int mpirun_signal = 0;          // that killed mpirun itself, and not by our doing
  bool mpirun_hung = false;  // it went on when its ranks had ended or were lost, and was killed
  bool all_said = false;     // every rank's record has its exit code
  std::optional<int>
      lost_status;           // of first_lost, where mpirun has not asked for it; as a shell has it
  bool never_began = false;  // the stop came before any rank had begun, and all were killed
};

// One line for the user and our exit code.
struct Verdict {
  int exit_code = 0;
  std::string line;        // empty when all went well
  bool rank_lost = false;  // a restart may help
};

Verdict ClassifyExit(const JobEnd& end, const std::string& resume = "--resume auto");  // job_end.cc

// "stopped after step 815; go on with --resume auto"
std::string StoppedText(int64_t step, const std::string& resume);

// `arguments` with any --resume replaced by `--resume auto`.
std::vector<std::string> WithResumeAuto(const std::vector<std::string>& arguments);

}  // namespace dtrain
