// `--hosts a:4,b:4`: the machines on which ranks are started, and how many ranks each takes.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

struct HostSlots {
  std::string host;  // name or address
  int slots = 1;     // ranks that it takes
};

// Parses the text of TextOf.  A host without a number has one slot, as for mpirun.  Throws UsageError, naming the part,
// for a part that is no host and for a host that is named twice.
std::vector<HostSlots> ParseHosts(const std::string& text);

std::string TextOf(const std::vector<HostSlots>& hosts);  // "a:4,b:4"
int SlotsOf(const std::vector<HostSlots>& hosts);         // slots of all hosts together

// Checks that this machine can start programs on each other machine, and that each has this program, this working
// directory and Open MPI; mpirun's own error message names none of these.  All are asked at the same time, by ssh or by
// the program that OMPI_MCA_plm_rsh_agent names, as mpirun does.  Throws UsageError for the first host that lacks
// something.  In a Slurm job, where mpirun needs no ssh, nothing is checked.
void CheckHosts(const std::vector<HostSlots>& hosts, const std::string& program);

}  // namespace dtrain
