#include "framework/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "framework/core/file.h"
#include "framework/device/cpu/threads.h"
#include "framework/device/cuda/module.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DoctorInfo Healthy() {
  DoctorInfo info;
  info.mpi_library = "Open MPI v4.1.4";
  info.mpi_thread_level = "multiple";
  info.mpirun = "/usr/bin/mpirun";
  info.shared_memory_bytes = int64_t{1} << 30;
  info.huge_pages = "madvise";
  return info;
}

TEST(DoctorReport, AHealthyMachineNeedsNoAdvice) { EXPECT_THAT(AdviceFor(Healthy()), IsEmpty()); }

TEST(DoctorReport, AdvisesWhereMpiFails) {
  DoctorInfo info = Healthy();
  info.mpi_library = "";
  info.mpirun = "";
  EXPECT_THAT(AdviceFor(info),
              ElementsAre(HasSubstr("MPI does not start"), HasSubstr("PATH has no mpirun")));
  info.launcher_variables = {"PMIX_RANK", "SLURM_STEP_ID"};
  EXPECT_THAT(AdviceFor(info).front(), HasSubstr("unset PMIX_RANK SLURM_STEP_ID"));
  info = Healthy();
  info.mpi_thread_level = "funneled";
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("thread level is funneled")));
}

TEST(DoctorReport, AdvisesWhereNamesHaveNoAddress) {
  DoctorInfo info = Healthy();
  info.host_name = "node7";
  info.host_resolves = false;
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("add '127.0.1.1 node7' to /etc/hosts")));
  info.host_resolves = true;
  info.has_hosts_file = false;
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("there is no /etc/hosts")));
}

TEST(DoctorReport, AdvisesWhereTheHostNameIsTooLongForMpirun) {
  DoctorInfo info = Healthy();
  info.host_name = std::string(50, 'n');
  EXPECT_THAT(AdviceFor(info), IsEmpty());
  info.host_name += 'n';
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("has 51 letters")));
}

TEST(DoctorReport, WhatTheSystemDoesNotTellIsUnknown) {
  EXPECT_EQ(DoctorInfo().huge_pages, "unknown");
}

TEST(DoctorReport, AdvisesOnHalfHiddenAmx) {
  DoctorInfo info = Healthy();
  info.amx_reported = true;
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("hides CPUID leaf 0x1D")));
  info.amx_described = true;
  EXPECT_THAT(AdviceFor(info), IsEmpty());
}

TEST(DoctorReport, AdvisesOnSmallSharedMemoryAndPages) {
  DoctorInfo info = Healthy();
  info.shared_memory_bytes = 64 << 20;
  info.huge_pages = "never";
  EXPECT_THAT(AdviceFor(info),
              ElementsAre(HasSubstr("/dev/shm has 64 MB free"), HasSubstr("huge pages are off")));
}

TEST(DoctorReport, A256thMegabyteOfSharedMemoryIsEnough) {
  DoctorInfo info = Healthy();
  info.shared_memory_bytes = int64_t{256} << 20;
  EXPECT_THAT(AdviceFor(info), IsEmpty());
  --info.shared_memory_bytes;
  EXPECT_THAT(AdviceFor(info), ElementsAre(HasSubstr("/dev/shm has 255 MB free")));
}

TEST(DoctorReport, AdvisesOnACudaModuleThatDoesNotLoad) {
  DoctorInfo info = Healthy();
  info.gpu_hint = "install CUDA's libraries";
  EXPECT_THAT(AdviceFor(info), ElementsAre("no GPU can be used: install CUDA's libraries"));
}

bool IsFirstLine(const std::string& file, int64_t number) {
  return std::filesystem::exists(file) && ReadFile(file) == std::to_string(number) + "\n";
}

TEST(DoctorReport, FindsWhatThisMachineHas) {
  const DoctorInfo info = GatherDoctorInfo();
  EXPECT_GE(info.cores, 1);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_FALSE(info.isa.empty());
  EXPECT_FALSE(info.cpu.empty());
  for (const auto& [library, version] : info.libraries) EXPECT_FALSE(version.empty()) << library;
  EXPECT_EQ(info.cores, std::ssize(UsableCpus()));
  EXPECT_THAT(info.mpi_library, HasSubstr("MPI"));
  const std::string memory = ReadFile("/proc/meminfo");  // a container's may say less
  const std::string total = "MemTotal:";
  ASSERT_TRUE(memory.starts_with(total));
  EXPECT_GE(static_cast<double>(info.memory_bytes),
            1024 * std::stod(memory.substr(total.size())) - 1e6);
  const std::string cpus = ReadFile("/proc/cpuinfo");
  if (cpus.find("model name") != std::string::npos) {
    EXPECT_THAT(cpus, HasSubstr(": " + info.cpu + "\n"));
    EXPECT_FALSE(info.cpu.starts_with(' '));
  }
  if (cpus.find(" amx_tile ") != std::string::npos) {
    EXPECT_TRUE(info.amx_reported);
  }
  if (info.memory_limit_bytes > 0) {
    EXPECT_TRUE(IsFirstLine("/sys/fs/cgroup/memory.max", info.memory_limit_bytes) ||
                IsFirstLine("/sys/fs/cgroup/memory/memory.limit_in_bytes", info.memory_limit_bytes))
        << info.memory_limit_bytes;
  }
  std::error_code none;
  const auto shared = std::filesystem::space("/dev/shm", none).available;
  if (!none) {
    EXPECT_GE(info.shared_memory_bytes, static_cast<int64_t>(shared / 2)) << "others use it too";
  }
  if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled")) {
    EXPECT_THAT(ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"),
                HasSubstr("[" + info.huge_pages + "]"));
  }
  const bool resolves = std::system("getent ahosts \"$(uname -n)\" >/dev/null") == 0;
  EXPECT_EQ(info.host_resolves, resolves);
  if (const auto lack = WhyNoCuda(); lack && lack->of_the_machine) {
    EXPECT_EQ(info.gpu_hint, "");
  }
}

// The rows are in the order of the text.
TEST(DoctorCommand, PrintsWhatItFinds) {
  const DoctorInfo info = GatherDoctorInfo();
  const nlohmann::ordered_json json = IndentedJson(RunCommand({"doctor", "--json"}).out);
  const nlohmann::ordered_json& facts = json["facts"];
  EXPECT_EQ(json["advice"], nlohmann::ordered_json(AdviceFor(info)));
  EXPECT_EQ(facts["MPI"], info.mpi_library + ", threads: " + info.mpi_thread_level);
  EXPECT_EQ(facts["AMX"], !info.amx_reported   ? "none"
                          : info.amx_described ? "yes"
                                               : "half hidden; guarded");
  EXPECT_EQ(facts["bf16"], info.no_bf16.empty() ? "yes" : "no: " + info.no_bf16);
  EXPECT_EQ(facts["cores"], std::to_string(info.cores));
  EXPECT_EQ(facts["memory"].get<std::string>().find(", limited to ") != std::string::npos,
            info.memory_limit_bytes > 0);
  EXPECT_EQ(facts["host name"],
            info.host_name + (info.host_resolves ? "" : ", without an address"));
  std::string text;
  for (const auto& [name, value] : facts.items()) {
    // The free part of the shared memory changes.
    if (name == "shared memory") break;
    text += fmt::format("{:17} {}\n", name, value.get<std::string>());
  }
  const std::string out = RunCommand({"doctor"}).out;
  EXPECT_THAT(out, testing::StartsWith(text));
  EXPECT_EQ(out.find("nothing known to go wrong here") != std::string::npos,
            AdviceFor(info).empty());
}

}  // namespace
}  // namespace dtrain
