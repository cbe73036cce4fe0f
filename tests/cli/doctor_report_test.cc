#include "framework/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(DoctorReport, AdvisesOnACudaModuleThatDoesNotLoad) {
  DoctorInfo info = Healthy();
  info.gpu_hint = "install CUDA's libraries";
  EXPECT_THAT(AdviceFor(info), ElementsAre("no GPU can be used: install CUDA's libraries"));
}

TEST(DoctorReport, FindsWhatThisMachineHas) {
  const DoctorInfo info = GatherDoctorInfo();
  EXPECT_GE(info.cores, 1);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_FALSE(info.isa.empty());
  EXPECT_FALSE(info.cpu.empty());
  for (const auto& [library, version] : info.libraries) EXPECT_FALSE(version.empty()) << library;
}

}  // namespace
}  // namespace dtrain
