// What `dtrain doctor` knows: facts about this program and machine, and advice that follows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct DoctorInfo {
  // Name and version, built against and found at run time where both are known.
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string mpi_library;       // its own name for itself; empty when MPI does not start
  std::string mpi_thread_level;  // "multiple", "serialized", ...
  std::string mpirun;            // path, empty when PATH has none
  std::string cpu;
  std::string isa;         // of our own kernels
  std::string onednn_isa;  // what oneDNN may use
  bool amx_reported = false;
  bool amx_described = false;  // the leaf that oneDNN reads is there
  std::string no_bf16;         // why `precision: bf16` is not available; empty when it is
  std::string gpu;             // as CudaDevices
  std::string gpu_hint;        // what to do about a module that cannot be used; "" where it can
  int cores = 0;               // this process may use
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;      // of the control group; 0: none
  int64_t shared_memory_bytes = 0;     // free in /dev/shm
  std::string huge_pages = "unknown";  // "always", "madvise", "never"
  std::string host_name;
  bool host_resolves = true;  // this name stands for an address
  bool has_hosts_file = true;
};

DoctorInfo GatherDoctorInfo();

// What is known to go wrong with such facts, and what to do about it.
std::vector<std::string> AdviceFor(const DoctorInfo& info);

}  // namespace dtrain
