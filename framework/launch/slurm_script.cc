#include "framework/launch/slurm_script.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

// Slurm sends the stop signal 120 s before the limit, or up to 60 s earlier (man sbatch, --signal).
constexpr int64_t kStopSecondsMax = 180;

constexpr std::string_view kNameCharacters = "._-";

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

// Returns a text like "4 workers" or "4 workers and 1 server".
std::string Ranks(const SlurmJob& job) {
  const std::string workers = Counted(job.workers, "worker");
  return job.servers == 0 ? workers : workers + " and " + Counted(job.servers, "server");
}

SlurmNodes NodesAt(const SlurmJob& job, int per_node) {
  if (!job.servers_apart) return {per_node, CeilDivide(job.workers + job.servers, per_node), 0};
  return {per_node, CeilDivide(job.workers, per_node), CeilDivide(job.servers, per_node)};
}

bool ByMpirun(const SlurmJob& job) { return job.launcher == "mpirun"; }

// Slurm's own distribution of ranks is right as long as all nodes are full and have one kind of rank.
bool NeedsRankList(const SlurmJob& job, const SlurmNodes& nodes) {
  return job.servers_apart || (job.workers + job.servers) % nodes.per_node != 0;
}

// Returns the seconds of a value of sbatch's --time: [days-]hours[:minutes[:seconds]], minutes[:seconds],
// hours:minutes:seconds.
std::optional<int64_t> SecondsOf(const std::string& time) {
  static const std::regex kDays(R"((\d{1,5})-(\d{1,5})(?::(\d{1,5}))?(?::(\d{1,5}))?)");
  static const std::regex kHours(R"((?:(\d{1,5}):(?=\d+:))?(\d{1,5})(?::(\d{1,5}))?)");
  std::smatch part;
  const auto number = [&](int i) { return part[i].matched ? std::stoll(part[i].str()) : 0; };
  if (std::regex_match(time, part, kDays)) {
    return ((number(1) * 24 + number(2)) * 60 + number(3)) * 60 + number(4);
  }
  if (!std::regex_match(time, part, kHours)) return std::nullopt;
  return (number(1) * 60 + number(2)) * 60 + number(3);
}

// Describes an option of sbatch that some sites require.
struct SiteOption {
  const char* name;
  const std::string& value;  // "": not given
  const char* what;
  const char* pattern;
  const char* example;  // the value shown in the script's comment
  const char* hint;
};

std::vector<SiteOption> SiteOptions(const SlurmJob& job) {
  constexpr const char* kName = "[A-Za-z0-9._@,-]+";
  return {
      {"partition", job.partition, "partition", kName, "NAME", "sinfo lists them"},
      {"account", job.account, "account", kName, "NAME", "sacctmgr show associations lists them"},
      {"qos", job.qos, "quality of service", kName, "NAME", "sacctmgr show qos lists them"},
      {"mem", job.memory, "amount of memory", "[0-9]+[KMGTkmgt]?[Bb]?", "64G",
       "of a node, as in 64G; 0: all that it has"},
      {"gres", job.gres, "list of resources", "[A-Za-z0-9._:,=/-]+", "gpu:4",
       "of a node, as in gpu:4; sinfo -o %G lists them"},
      {"constraint", job.constraint, "list of features", R"([A-Za-z0-9._&|*()\[\]:,=-]+)",
       "FEATURE", "features of a node, as in skylake&ib; sinfo -o %f lists them"},
      {"mail-type", job.mail_type, "list of events", "[A-Za-z0-9_,]+", "END,FAIL",
       "as in END,FAIL; man sbatch lists them"},
      {"mail-user", job.mail_user, "mail address", "[A-Za-z0-9._%+@,-]+", "NAME@HOST",
       "as in name@host"}};
}

bool AsksForGpus(const SlurmJob& job) {
  static const std::regex gpu("(?:.*,)?(?:gres[:/])?gpu(?:[:=,].*)?");
  return std::regex_match(job.gres, gpu);
}

// The job would hold GPUs that it does not use.
void CheckGpus(const SlurmJob& job) {
  if (job.on_gpu || !AsksForGpus(job)) return;
  throw UsageError(
      fmt::format("--gres {} asks for GPUs, and the run computes on the CPU", job.gres),
      "set device: cuda in the config, or give --device cuda; else leave the GPUs out");
}

void CheckWords(const SlurmJob& job) {
  const std::vector<std::string> launchers = {"srun", "yhrun", "mpirun"};
  if (std::ranges::find(launchers, job.launcher) == launchers.end()) {
    throw UsageError(fmt::format("there is no launcher '{}'", job.launcher),
                     SuggestName(job.launcher, launchers));
  }
  const std::optional<int64_t> seconds = SecondsOf(job.time);
  if (!seconds) {
    throw UsageError(fmt::format("'{}' is no time limit of Slurm", job.time),
                     "minutes, hours:minutes:seconds or days-hours: 90, 1:30:00, 2-12");
  }
  if (*seconds <= kStopSecondsMax) {
    throw UsageError(
        fmt::format(
            "a time limit of {} leaves no time to train: the run is stopped up to {} s before",
            job.time, kStopSecondsMax),
        "take 5 minutes or more");
  }
  for (const SiteOption& option : SiteOptions(job)) {
    if (option.value.empty()) continue;
    if (option.value[0] == '-' || !std::regex_match(option.value, std::regex(option.pattern))) {
      throw UsageError(fmt::format("'{}' is no {} of Slurm", option.value, option.what),
                       option.hint);
    }
  }
  for (const std::string& module : job.modules) {
    if (ConsistsOf(module, "._-/+=:@~") && module[0] != '-') continue;
    throw UsageError(fmt::format("'{}' is no name of a module", module),
                     "module avail lists them; give --module once for each");
  }
}

std::string Introduction(const SlurmJob& job, const SlurmNodes& nodes) {
  const std::string servers =
      nodes.servers == 0 ? "" : fmt::format(", the servers on {} more", nodes.servers);
  return fmt::format(R"(#!/bin/bash
# {ranks} under Slurm, by {launcher}: {per_node} a node on {nodes}{servers}.
# Submit it with {batch} from the folder that the paths below start in.
#
# Before the time limit the run is asked to stop (USR1): it writes a checkpoint and ends with code 75,
# the job goes back into the queue and continues there.  scancel ends it for good.  Compute nodes may
# have no internet: fetch the data before, with `dtrain data fetch`.
)",
                     fmt::arg("ranks", Ranks(job)), fmt::arg("launcher", job.launcher),
                     fmt::arg("per_node", nodes.per_node),
                     fmt::arg("nodes", Counted(nodes.workers, "node")),
                     fmt::arg("servers", servers),
                     fmt::arg("batch", job.launcher == "yhrun" ? "yhbatch" : "sbatch"));
}

std::string Directives(const SlurmJob& job, const SlurmNodes& nodes) {
  std::vector<std::string> options = {"--job-name=" + job.name,
                                      fmt::format("--nodes={}", nodes.total()),
                                      fmt::format("--ntasks-per-node={}", nodes.per_node)};
  if (job.threads > 0) {
    options.push_back(fmt::format("--cpus-per-task={}", job.threads));
  } else if (!job.shared) {
    options.emplace_back("--exclusive");
  }
  options.push_back("--time=" + job.time);
  std::string later;
  for (const SiteOption& option : SiteOptions(job)) {
    if (option.value.empty()) {
      later += fmt::format("##SBATCH --{}={}\n", option.name, option.example);
    } else {
      options.push_back(fmt::format("--{}={}", option.name, option.value));
    }
  }
  // Slurm sends the signal two minutes before the limit to the job's steps; srun's ranks are steps.  mpirun's ranks on
  // the first node belong to no step: there the script gets the signal and passes it to mpirun.
  options.push_back(ByMpirun(job) ? "--signal=B:USR1@120" : "--signal=USR1@120");
  options.insert(options.end(), {"--requeue", "--open-mode=append", "--output=%x-%j.log"});
  const std::string given = "#SBATCH " + Join(options, "\n#SBATCH ") + "\n";
  if (later.empty()) return given;
  return given +
         "# Options that some sites need: remove one # to use a line, or give the option to "
         "sbatch:\n" +
         later;
}

// Returns the lines that load the modules; they come before any program of these is used.  If the batch shell does not
// know `module`, the lines read a login shell's files.
std::string Modules(const SlurmJob& job) {
  if (job.modules.empty()) return "\n# module load NAME\n";
  std::string text = R"(
# shellcheck source=/dev/null
command -v module >/dev/null || . /etc/profile
module load)";
  for (const std::string& module : job.modules) text += fmt::format(" {}", ShellWord(module));
  return text + " || exit\n";
}

std::string Settings(const SlurmJob& job, const SlurmNodes& nodes) {
  std::string text = "\n";
  if (ByMpirun(job)) {
    text += "control=${CONTROL:-scontrol}  # yhcontrol on Tianhe\n";
  } else {
    text += fmt::format("launcher=${{LAUNCHER:-{}}}\n", job.launcher);
    text += "control=${launcher%run}control  # scontrol, yhcontrol\n";
  }
  text +=
      fmt::format("workers={} servers={} per_node={}\n", job.workers, job.servers, nodes.per_node);
  text += job.threads > 0 ? fmt::format("cpus={}  # of each rank\n", job.threads)
                          : "cpus=$((SLURM_CPUS_ON_NODE / per_node))  # of each rank\n";
  text += "output=runs/$SLURM_JOB_NAME-$SLURM_JOB_ID  # the same when the job comes back\n";
  text += fmt::format("train=({} train", ShellWord(job.program));
  for (const std::string& argument : job.train) text += fmt::format(" {}", ShellWord(argument));
  if (job.servers > 0) text += R"( --set strategy.servers="$servers")";
  return text + R"(
  --workers "$workers" --output "$output" --resume auto)

# Threads are not pinned: ranks that share a node's CPUs would all pin to the same ones.
export OMP_NUM_THREADS=$cpus OMP_PROC_BIND=false
)";
}

// Returns the lines that write the node of each rank, a line a rank; srun and mpirun read the same file.
std::string RankList(const SlurmJob& job) {
  std::string text = R"(
# The node of each rank, a line a rank: )";
  text += job.servers_apart ? "workers, then servers on nodes of their own.\n"
                            : "the last node may have fewer.\n";
  text += R"(mapfile -t nodes < <("$control" show hostnames "$SLURM_JOB_NODELIST")
mkdir -p "$output"
hosts=$output/hosts
)";
  if (!job.servers_apart) {
    return text + R"(for ((rank = 0; rank < workers + servers; rank++)); do
  echo "${nodes[rank / per_node]}"
done >"$hosts"
)";
  }
  return text + R"(server_node=$(((workers + per_node - 1) / per_node))
{
  for ((w = 0; w < workers; w++)); do echo "${nodes[w / per_node]}"; done
  for ((s = 0; s < servers; s++)); do echo "${nodes[server_node + s / per_node]}"; done
} >"$hosts"
)";
}

// srun needs the CPUs of a rank again: since Slurm 22.05 it does not take the job's.  --wait ends ranks that hang a
// minute after one is gone; otherwise they would hold the nodes.
//
// SLURM_PMIX_FENCE: now and then a rank receives a message while it is still in MPI_Init and crashes, as if the others'
// fence had not waited for it (github.com/open-mpi/ompi/issues/12495 reports the same).  Of starts with ranks up to 0.3
// s apart, 2 of 72 crashed by default, 13 of 55 with `tree`, none of 69 with `ring` (Slurm 22.05.8, PMIx 4.2.2, Open
// MPI 4.1.4).
std::string LaunchBySrun(bool rank_list) {
  std::string text = R"(
export SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-ring}  # other fences sometimes crash a start
)";
  if (rank_list) {
    text += R"(unset SLURM_NTASKS_PER_NODE  # the list says it; srun would warn
export SLURM_HOSTFILE=$hosts
)";
  }
  text += R"("$launcher" --mpi="${SLURM_MPI_TYPE:-pmix}" --ntasks=$((workers + servers)) \
  --cpus-per-task="$cpus" --wait=60)";
  if (rank_list) text += " --distribution=arbitrary";
  return text + " \"${train[@]}\"\ncode=$?\n";
}

// mpirun starts its daemons as a step of its own, which by default gets few of a node's CPUs.
std::string LaunchByMpirun(bool rank_list) {
  std::string text = R"(
export SLURM_WHOLE=1  # mpirun's daemons use all CPUs of the job
# They notice a lost node within 40 s, not after eight minutes.
export OMPI_MCA_oob_tcp_keepalive_time=20 OMPI_MCA_oob_tcp_keepalive_intvl=5 OMPI_MCA_oob_tcp_keepalive_probes=4
trap 'signalled=1; kill -USR1 "$!"' USR1
mpirun -n $((workers + servers)) --bind-to none)";
  if (rank_list) text += R"( --map-by seq --hostfile "$hosts")";
  text += " \"${train[@]}\" &\n";
  return text + R"(
# A signal ends `wait` early: then wait again, for the code of the ranks.
signalled=1
while [ "$signalled" = 1 ]; do
  signalled=0
  wait "$!"
  code=$?
done
)";
}

std::string End() {
  return R"(
if [ "$code" -eq 75 ]; then "$control" requeue "$SLURM_JOB_ID"; fi
exit "$code"
)";
}

}  // namespace

SlurmNodes NodesOf(const SlurmJob& job) {
  DT_CHECK(job.workers >= 1 && job.servers >= 0 && job.per_node >= 1 && job.nodes >= 0);
  if (job.servers_apart && job.servers == 0) {
    throw UsageError("--servers-apart: the run has no servers with ranks of their own",
                     "leave it out, or take a strategy with placement: dedicated");
  }
  if (job.nodes == 0) return NodesAt(job, job.per_node);
  int per_node = 1;
  const int ranks = job.workers + job.servers;
  while (per_node < ranks && NodesAt(job, per_node).total() > job.nodes) ++per_node;
  const SlurmNodes nodes = NodesAt(job, per_node);
  if (nodes.total() == job.nodes) return nodes;
  throw UsageError(
      fmt::format("{} cannot be filled with {}: at {} a node they take {}",
                  Counted(job.nodes, "node"), Ranks(job), per_node, nodes.total()),
      fmt::format("take --nodes {}, or other numbers of workers and servers", nodes.total()));
}

std::string SlurmScript(const SlurmJob& job) {
  CheckWords(job);
  CheckGpus(job);
  const SlurmNodes nodes = NodesOf(job);
  const bool rank_list = NeedsRankList(job, nodes);
  return Introduction(job, nodes) + Directives(job, nodes) + Modules(job) + Settings(job, nodes) +
         (rank_list ? RankList(job) : "") +
         (ByMpirun(job) ? LaunchByMpirun(rank_list) : LaunchBySrun(rank_list)) + End();
}

std::string SlurmJobName(std::string text) {
  for (char& c : text) {
    if (!ConsistsOf({&c, 1}, kNameCharacters)) c = '_';
  }
  return text.empty() ? "dtrain" : text;
}

}  // namespace dtrain
