#include "framework/cli/doctor_report.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <archive.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>

#include "framework/core/isa.h"
#include "framework/core/process.h"
#include "framework/device/cpu/threads.h"
#include "framework/device/cuda/module.h"
#include "framework/launch/child_program.h"
#include "framework/onnx/file/onnx_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

std::string FirstLine(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

#if defined(__x86_64__)
void FindAmx(DoctorInfo& info) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  info.amx_reported = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 1) != 0;
  info.amx_described = __get_cpuid_count(0x1D, 1, &a, &b, &c, &d) != 0 && (a | b | c) != 0;
}
#else
void FindAmx(DoctorInfo&) {}
#endif

std::string OneDnnIsaName() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse4.1";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other";
  }
}

std::string OneDnnVersion() {
  const dnnl_version_t* found = dnnl_version();
  return fmt::format("{}.{}.{}", found->major, found->minor, found->patch);
}

std::string Hdf5Version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::string LevelName(int level) {
  if (level >= MPI_THREAD_MULTIPLE) return "multiple";
  if (level >= MPI_THREAD_SERIALIZED) return "serialized";
  return level >= MPI_THREAD_FUNNELED ? "funneled" : "single";
}

// Starts MPI in a child process, because a failing MPI_Init ends its process.
void TryMpi(DoctorInfo& info) {
  std::array<int, 2> answer = {};
  if (::pipe(answer.data()) != 0) return;
  const pid_t child = ::fork();
  if (child == 0) {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    [[maybe_unused]] const ssize_t written = ::write(answer[1], &level, sizeof(level));
    MPI_Finalize();
    ::_exit(0);
  }
  ::close(answer[1]);
  int level = 0;
  const bool started = child > 0 && ::read(answer[0], &level, sizeof(level)) == sizeof(level);
  ::close(answer[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (!started) return;
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> name = {};
  int length = 0;
  MPI_Get_library_version(name.data(), &length);
  info.mpi_library = std::string(name.data()).substr(0, std::string(name.data()).find(','));
  info.mpi_thread_level = LevelName(level);
}

void FindMachine(DoctorInfo& info) {
  info.cpu = CpuName();
  FindAmx(info);
  info.cores = static_cast<int>(UsableCpus().size());
  info.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const int64_t limit = std::strtoll(FirstLine(file).c_str(), nullptr, 10);
    if (limit > 0 && limit < info.memory_bytes) info.memory_limit_bytes = limit;
  }
  struct statvfs shared = {};
  if (::statvfs("/dev/shm", &shared) == 0) {
    info.shared_memory_bytes = static_cast<int64_t>(shared.f_bavail * shared.f_frsize);
  }
  const std::string pages = FirstLine("/sys/kernel/mm/transparent_hugepage/enabled");
  if (const size_t at = pages.find('['); at != std::string::npos) {
    info.huge_pages = pages.substr(at + 1, pages.find(']') - at - 1);
  }
}

void FindNames(DoctorInfo& info) {
  info.host_name = HostName();
  addrinfo* found = nullptr;
  info.host_resolves = ::getaddrinfo(info.host_name.c_str(), nullptr, nullptr, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  std::error_code error;
  info.has_hosts_file = fs::exists("/etc/hosts", error);
}

}  // namespace

std::string CpuName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

DoctorInfo GatherDoctorInfo() {
  DoctorInfo info;
  TryMpi(info);  // first, because it forks
  info.libraries = {{"compiler", "g++ " __VERSION__},
                    {"oneDNN", OneDnnVersion()},
                    {"HDF5", Hdf5Version()},
                    {"Open MPI headers", fmt::format("{}.{}.{}", OMPI_MAJOR_VERSION,
                                                     OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)},
                    {"yaml-cpp", DTRAIN_YAML_CPP_VERSION},
                    {"libarchive", archive_version_string()},
                    {"libcurl", curl_version_info(CURLVERSION_NOW)->version},
                    {"OpenSSL", OpenSSL_version(OPENSSL_VERSION)},
                    {"ONNX", OnnxLibrary()}};
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_ID"}) {
    if (std::getenv(name) != nullptr) info.launcher_variables.emplace_back(name);
  }
  info.mpirun = FindMpirun();
  info.isa = IsaName(CpuIsa());
  info.onednn_isa = OneDnnIsaName();
  info.no_bf16 = WhyNoAmx();
  info.gpu = CudaDevices();
  const auto lack = WhyNoCuda();
  if (lack && lack->module_is_there && !lack->of_the_machine) info.gpu_hint = lack->hint;
  FindMachine(info);
  FindNames(info);
  return info;
}

std::vector<std::string> AdviceFor(const DoctorInfo& info) {
  std::vector<std::string> advice;
  if (info.mpi_library.empty()) {
    advice.emplace_back("MPI does not start here: runs with one worker work, others do not" +
                        (info.launcher_variables.empty()
                             ? ""
                             : "; variables of a launcher are set, and if none started this shell: "
                               "unset " +
                                   Join(info.launcher_variables, " ")));
  } else if (info.mpi_thread_level != "multiple" && info.mpi_thread_level != "serialized") {
    advice.push_back("MPI's thread level is " + info.mpi_thread_level +
                     ": dtrain needs 'serialized', install an Open MPI with threads");
  }
  if (info.mpirun.empty()) {
    advice.emplace_back("PATH has no mpirun: --workers N needs it (Debian: openmpi-bin)");
  }
  if (info.amx_reported && !info.amx_described) {
    advice.emplace_back(
        "this virtual machine reports AMX but hides CPUID leaf 0x1D: oneDNN's AMX kernels would "
        "die with SIGILL, so dtrain keeps oneDNN to AVX-512");
  }
  if (!info.gpu_hint.empty()) advice.push_back("no GPU can be used: " + info.gpu_hint);
  constexpr int64_t kSharedMemoryMin = int64_t{256} << 20;  // containers often have 64 MB
  if (info.shared_memory_bytes < kSharedMemoryMin) {
    advice.push_back(
        fmt::format("/dev/shm has {} MB free, and Open MPI's ranks on one node talk "
                    "through it: start the container with --shm-size=1g",
                    info.shared_memory_bytes >> 20));
  }
  if (info.huge_pages == "never") {
    advice.emplace_back(
        "transparent huge pages are off: 'madvise' makes large models start faster");
  }
  if (!info.has_hosts_file) {
    advice.emplace_back(
        "there is no /etc/hosts, so 'localhost' may stand for nothing, and mpirun may not "
        "start its ranks: a line '127.0.0.1 localhost' is enough");
  }
  if (!info.host_resolves) {
    advice.push_back(fmt::format(
        "the name of this machine, {0}, does not stand for an address, and mpirun may wait for it "
        "or not start its ranks: add '127.0.1.1 {0}' to /etc/hosts",
        info.host_name));
  }
  constexpr size_t kHostNameMax = 50;  // mpirun of Open MPI 4.1.4 crashes from about 57 on
  if (info.host_name.size() > kHostNameMax) {
    advice.push_back(
        fmt::format("the name of this machine has {} letters, and Open MPI 4.1's mpirun may crash "
                    "at more than {}: give it a shorter one",
                    info.host_name.size(), kHostNameMax));
  }
  return advice;
}

}  // namespace dtrain
