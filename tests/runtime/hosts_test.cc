#include "framework/launch/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/launch/child_program.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Hosts, AreNamesWithTheirRanks) {
  const std::vector<HostSlots> hosts = ParseHosts("node1:4,10.0.0.2:2,gpu-a.cluster_1");
  EXPECT_EQ(TextOf(hosts), "node1:4,10.0.0.2:2,gpu-a.cluster_1:1");
  EXPECT_EQ(SlotsOf(hosts), 7);
}

TEST(Hosts, WhatIsNoHostIsNamed) {
  for (const std::string part : {"", ":4", "a:", "a:0", "a:-1", "a:4x", "a:65537", "a:1:2", "-a:1",
                                 "a b:1", "a;b:2", "$(x):1", "a:99999999999999999999"}) {
    EXPECT_EQ(MessageOf<UsageError>([&] { ParseHosts("node1:4," + part); }),
              "--hosts: '" + part +
                  "' is no host with its number of ranks | as in --hosts node1:4,node2:4");
  }
  EXPECT_THAT(MessageOf<UsageError>([&] { ParseHosts(""); }), HasSubstr("--hosts: ''"));
  EXPECT_THAT(MessageOf<UsageError>([&] { ParseHosts("a:1,b:2,a:3"); }),
              HasSubstr("'a' is named twice"));
}

// Replaces ssh by a script that knows the hosts `good`, `empty` and `lacks`.
class CheckedHosts : public ::testing::Test {
 protected:
  CheckedHosts() {
    const std::string agent =
        folder_.Write("agent",
                      "#!/bin/sh\ncase $1 in\n"
                      "  good) exec sh -c \"orted() { :; }; $2\" ;;\n"
                      "  lacks) PATH=${0%/*}/missing exec /bin/sh -c \"$2\" ;;\n"
                      "  empty) exec sh -c \"test() { [ \\\"\\$1\\\" = -x ]; }; $2\" ;;\n"
                      "  *) echo \"cannot resolve $1\" >&2; exit 255 ;;\nesac\n");
    std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
    ::setenv("OMPI_MCA_plm_rsh_agent", (agent + " : rsh").c_str(), 1);  // a list, as Open MPI takes
    ::unsetenv("SLURM_JOB_ID");
  }
  ~CheckedHosts() override { ::unsetenv("OMPI_MCA_plm_rsh_agent"); }

  static std::string Message(const std::string& hosts, const std::string& program = "/bin/sh") {
    return MessageOf<UsageError>([&] { CheckHosts(ParseHosts(hosts), program); });
  }

  TempFolder folder_;
};

TEST_F(CheckedHosts, AreThereWithProgramFolderAndOpenMpi) {
  CheckHosts(ParseHosts("good:2"), "/bin/sh");
  EXPECT_THAT(Message("good,absent:2"),
              AllOf(HasSubstr("no program can be started on host absent"), HasSubstr("status 255"),
                    HasSubstr("`ssh absent true` must work without a password")));
  const std::string missing = folder_ / "it's";
  EXPECT_THAT(Message("good", missing), HasSubstr("host good has no program " + missing));
  EXPECT_THAT(Message("empty"), HasSubstr("host empty has no folder "));
  EXPECT_THAT(Message("good,lacks"), HasSubstr("host lacks has no Open MPI"));
}

TEST_F(CheckedHosts, ThisOneAndThoseOfASlurmJobAreNotAsked) {
  CheckHosts(ParseHosts("localhost:2," + HostName()), folder_ / "missing");
  ::setenv("SLURM_JOB_ID", "7", 1);
  CheckHosts(ParseHosts("absent"), folder_ / "missing");
  ::unsetenv("SLURM_JOB_ID");
}

TEST(Hosts, MpirunFillsThemInTheirOrder) {
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  ::setenv("DTRAIN_DATA", "/data", 0);
  const auto command = MakeMpirunCommand({.ranks = 6,
                                          .executable = "/opt/dtrain",
                                          .arguments = {"train"},
                                          .hosts = ParseHosts("a:4,b:4"),
                                          .status_folder = "/tmp/x"});
  std::string line;
  for (const std::string& argument : command.arguments) line += argument + " ";
  EXPECT_THAT(line, AllOf(HasSubstr(" --host a:4,b:4 --map-by slot "), HasSubstr(" -n 6 "),
                          HasSubstr(" -x DTRAIN_DATA "), HasSubstr(" -x DTRAIN_STATUS_FOLDER "),
                          HasSubstr(" -x OMP_WAIT_POLICY "), HasSubstr(" /opt/dtrain train ")));
  EXPECT_THAT(command.environment, Each(Not(StartsWith("OMPI_MCA_orte_tmpdir_base="))));
}

}  // namespace
}  // namespace dtrain
