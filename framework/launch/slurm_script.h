// Makes the text of the batch script that trains one run under Slurm.
//
// Ranks 0..workers-1 are the workers, the servers follow (strategies/placement.h).  Before the time limit the script
// stops the run with a checkpoint; when the run ends with exit code 75, the script puts the job back into the queue.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

struct SlurmJob {
  std::string name;                // name of the job, its log and its run folder
  std::string program = "dtrain";  // path, or a name in PATH
  // Holds the arguments of `dtrain train`, without --workers, --output, --resume.
  std::vector<std::string> train;
  int workers = 1;
  int servers = 0;             // servers with ranks of their own; 0 if they are colocated
  int per_node = 1;            // ranks on a node
  int nodes = 0;               // 0: follows from per_node; else per_node follows from it
  bool servers_apart = false;  // no server shares a node with a worker
  // A rank gets this many CPUs; 0: whole nodes, whose CPUs are divided by per_node
  int threads = 0;
  std::string launcher = "srun";  // "srun", "yhrun" (Tianhe), "mpirun"
  std::string time = "01:00:00";  // time limit in Slurm's format
  // Some sites require these options; "": the cluster's defaults.
  std::string partition;
  std::string account;
  std::string qos;
  std::string memory;  // of a node: "64G"
  std::string gres;    // of a node: "gpu:4"
  std::string constraint;
  std::string mail_type;
  std::string mail_user;
  bool shared = false;  // without threads: the nodes may have other jobs, too
  bool on_gpu = false;  // the run computes on GPUs
  // Lists the environment modules that the job loads first, in this order: "openmpi/4.1".
  std::vector<std::string> modules;
};

struct SlurmNodes {
  int per_node = 1;
  int workers = 1;  // nodes with workers
  int servers = 0;  // nodes with servers alone
  int total() const { return workers + servers; }
};

// Distributes the ranks over nodes.  Throws UsageError if `nodes` nodes cannot be filled, or if servers are to have
// nodes of their own and there are none.
SlurmNodes NodesOf(const SlurmJob& job);

// Returns the script.  Options that are not given are in it as comments, to be filled in later.  Throws UsageError as
// NodesOf does, for a launcher, a time or any other word that Slurm or the shell would misread, and for GPUs that the run
// would not use.
std::string SlurmScript(const SlurmJob& job);

// Returns `text` as a job's name: every character that is not a letter, digit, '.', '_' or '-' becomes '_'.
std::string SlurmJobName(std::string text);

}  // namespace dtrain
