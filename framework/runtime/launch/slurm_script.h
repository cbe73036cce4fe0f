// The batch script that trains one run under Slurm, as text made from plain numbers.
//
// Ranks 0..workers-1 are the workers, the servers follow (strategies/placement.h).  The printed
// script stops the run with a checkpoint before the time limit, and puts the job back into the
// queue when it ends with exit code 75.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

struct SlurmJob {
  std::string name;                // of the job, its log and its run folder
  std::string program = "dtrain";  // path, or a name of PATH
  std::vector<std::string>
      train;  // arguments of `dtrain train`, without --workers, --output, --resume
  int workers = 1;
  int servers = 0;                // with ranks of their own: 0 where they are colocated
  int per_node = 1;               // ranks on a node
  int nodes = 0;                  // 0: by per_node; else per_node follows from it
  bool servers_apart = false;     // no server shares a node with a worker
  int threads = 0;                // CPUs of a rank; 0: whole nodes, divided by per_node
  std::string launcher = "srun";  // "srun", "yhrun" (Tianhe), "mpirun"
  std::string time = "01:00:00";  // limit, as Slurm writes it
  // What sites ask for beside; "": the cluster's defaults.
  std::string partition;
  std::string account;
  std::string qos;
  std::string memory;                // of a node: "64G"
  std::string gres;                  // of a node: "gpu:4"
  std::vector<std::string> modules;  // that the job loads first, in their order: "openmpi/4.1"
};

struct SlurmNodes {
  int per_node = 1;
  int workers = 1;  // nodes with workers
  int servers = 0;  // nodes with servers alone
  int total() const { return workers + servers; }
};

// How the ranks spread over nodes.  Throws UsageError when `nodes` nodes cannot be filled, or
// servers are to be apart and there are none.
SlurmNodes NodesOf(const SlurmJob& job);

// The script, with comments where an account and the like may be written in later.  Throws UsageError as NodesOf,
// and for a launcher, a time or any other word that Slurm or the shell would not take as it is meant.
std::string SlurmScript(const SlurmJob& job);

// `text` as a job's name: what is neither letter, digit, '.', '_' nor '-' becomes '_'.
std::string SlurmJobName(std::string text);

}  // namespace dtrain
