#include "framework/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DoctorFacts Healthy() {
  DoctorFacts facts;
  facts.mpi_library = "Open MPI v4.1.4";
  facts.mpi_thread_level = "multiple";
  facts.mpirun = "/usr/bin/mpirun";
  facts.shared_memory_bytes = int64_t{1} << 30;
  facts.huge_pages = "madvise";
  return facts;
}

TEST(DoctorReport, AHealthyMachineNeedsNoAdvice) { EXPECT_THAT(AdviceFor(Healthy()), IsEmpty()); }

TEST(DoctorReport, AdvisesWhereMpiFails) {
  DoctorFacts facts = Healthy();
  facts.mpi_library = "";
  facts.mpirun = "";
  EXPECT_THAT(AdviceFor(facts),
              ElementsAre(HasSubstr("MPI does not start"), HasSubstr("PATH has no mpirun")));
  facts = Healthy();
  facts.mpi_thread_level = "funneled";
  EXPECT_THAT(AdviceFor(facts), ElementsAre(HasSubstr("thread level is funneled")));
}

TEST(DoctorReport, AdvisesWhereNamesHaveNoAddress) {
  DoctorFacts facts = Healthy();
  facts.host_name = "node7";
  facts.host_resolves = false;
  EXPECT_THAT(AdviceFor(facts), ElementsAre(HasSubstr("add '127.0.1.1 node7' to /etc/hosts")));
  facts.host_resolves = true;
  facts.has_hosts_file = false;
  EXPECT_THAT(AdviceFor(facts), ElementsAre(HasSubstr("there is no /etc/hosts")));
}

TEST(DoctorReport, WhatTheSystemDoesNotTellIsUnknown) {
  EXPECT_EQ(DoctorFacts().huge_pages, "unknown");
}

TEST(DoctorReport, AdvisesOnHalfHiddenAmx) {
  DoctorFacts facts = Healthy();
  facts.amx_reported = true;
  EXPECT_THAT(AdviceFor(facts), ElementsAre(HasSubstr("hides CPUID leaf 0x1D")));
  facts.amx_described = true;
  EXPECT_THAT(AdviceFor(facts), IsEmpty());
}

TEST(DoctorReport, AdvisesOnSmallSharedMemoryAndPages) {
  DoctorFacts facts = Healthy();
  facts.shared_memory_bytes = 64 << 20;
  facts.huge_pages = "never";
  EXPECT_THAT(AdviceFor(facts),
              ElementsAre(HasSubstr("/dev/shm has 64 MB free"), HasSubstr("huge pages are off")));
}

TEST(DoctorReport, AdvisesOnACudaModuleThatDoesNotLoad) {
  DoctorFacts facts = Healthy();
  facts.gpu_hint = "install CUDA's libraries";
  EXPECT_THAT(AdviceFor(facts), ElementsAre("no GPU can be used: install CUDA's libraries"));
}

TEST(DoctorReport, FindsWhatThisMachineHas) {
  const DoctorFacts facts = GatherDoctorFacts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_FALSE(facts.isa.empty());
  EXPECT_FALSE(facts.cpu.empty());
  for (const auto& [library, version] : facts.libraries) EXPECT_FALSE(version.empty()) << library;
}

}  // namespace
}  // namespace dtrain
