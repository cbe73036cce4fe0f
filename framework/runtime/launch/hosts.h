// `--hosts a:4,b:4`: the machines that ranks are started on, and how many each takes.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

struct HostSlots {
  std::string host;  // a name or an address
  int slots = 1;     // ranks that it takes
};

// The inverse of TextOf; without a number a host has one slot, as for mpirun.  Throws UsageError that names the
// part that is none, and for a host that is named twice.
std::vector<HostSlots> ParseHosts(const std::string& text);

std::string TextOf(const std::vector<HostSlots>& hosts);  // "a:4,b:4"
int SlotsOf(const std::vector<HostSlots>& hosts);         // of all together

// Whether each other machine lets this one start programs, and has this program, this working directory and Open MPI:
// mpirun's own complaint names none of these.  All are asked at once, by ssh or by what OMPI_MCA_plm_rsh_agent
// names, as mpirun does.  Throws UsageError that names the first host with a lack.  In a Slurm job, where mpirun
// needs no ssh, nothing is asked.
void CheckHosts(const std::vector<HostSlots>& hosts, const std::string& program);

}  // namespace dtrain
