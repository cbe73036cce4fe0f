// Collects the data behind `dtrain doctor`: information about this program and machine, and the advice derived from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct DoctorInfo {
  // Name and version of each library: the version that dtrain was built with and the one found at run time, if both are
  // known.
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string mpi_library;       // the library's own version text; empty if MPI does not start
  std::string mpi_thread_level;  // "multiple", "serialized", ...
  // Variables by which a launcher tells MPI that it started this process.
  std::vector<std::string> launcher_variables;
  std::string mpirun;  // path; empty if mpirun is not in PATH
  std::string cpu;
  std::string isa;         // instruction set of dtrain's own CPU kernels
  std::string onednn_isa;  // instruction set that oneDNN may use
  bool amx_reported = false;
  bool amx_described = false;  // the CPUID leaf that oneDNN reads exists
  std::string no_bf16;         // why `precision: bf16` is not available; empty if it is
  std::string gpu;             // in the words of CudaDevices
  std::string gpu_hint;        // how to fix a CUDA module that cannot be used; "" if it can
  int cores = 0;               // number of cores that this process may use
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;      // limit of the control group; 0: none
  int64_t shared_memory_bytes = 0;     // free in /dev/shm
  std::string huge_pages = "unknown";  // "always", "madvise", "never"
  std::string host_name;
  bool host_resolves = true;  // the host name resolves to an address
  bool has_hosts_file = true;
};

DoctorInfo GatherDoctorInfo();

// Returns the name of this machine's CPU, "unknown" if the system does not tell.
std::string CpuName();

// Returns one text for each known problem that the information shows, with its remedy.
std::vector<std::string> AdviceFor(const DoctorInfo& info);

}  // namespace dtrain
