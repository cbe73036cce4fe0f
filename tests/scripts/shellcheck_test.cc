// Runs shellcheck on every shell script of the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "tests/data/temp_folder.h"
#include "tests/tidy/source_tree.h"

namespace dtrain {
namespace {

using ::testing::IsSupersetOf;

// Returns the scripts that a first line marks as such, whatever their names; sourced files have a
// shellcheck directive there.
std::vector<std::string> ShellScripts() {
  std::vector<std::string> scripts;
  for (const tidy::SourceFile& file : tidy::LoadSourceTree(DTRAIN_SOURCE_DIR)) {
    const std::string first = file.text.substr(0, file.text.find('\n'));
    const bool is_started = first.starts_with("#!") && first.ends_with("sh");
    if (is_started || first == "# shellcheck shell=bash") scripts.push_back(file.path);
  }
  return scripts;
}

// True if shellcheck is installed and reports nothing for these files and those that they source.
bool Accepts(const std::string& paths) {
  return std::system(("cd " DTRAIN_SOURCE_DIR " && shellcheck -x " + paths + " >&2").c_str()) == 0;
}

TEST(Shellcheck, IsInstalled) {
  EXPECT_EQ(std::system("shellcheck --version >/dev/null"), 0)
      << "launch/install-packages.sh --with-tests installs it";
}

TEST(Shellcheck, SeesEveryScript) {
  EXPECT_THAT(
      ShellScripts(),
      IsSupersetOf({".ci/run", "launch/install-packages.sh", "launch/quickstart.sh",
                    "launch/slurm/train.sbatch", "launch/slurm/train_mpirun.sbatch",
                    "launch/slurm/train_servers.sbatch", "launch/slurm/train_servers_mpirun.sbatch",
                    "tests/check_skips.sh", "tests/run.sh", "tools/completion/dtrain.bash"}));
}

TEST(Shellcheck, AcceptsAll) {
  for (const std::string& script : ShellScripts()) EXPECT_TRUE(Accepts(script)) << script;
}

TEST(Shellcheck, RefusesAPlantedError) {
  const TempFolder folder;
  const std::string sound = folder.Write("sound.sh", "#!/bin/sh\nrm \"$1\"\n");
  const std::string unquoted = folder.Write("unquoted.sh", "#!/bin/sh\nrm $1\n");
  EXPECT_TRUE(Accepts(sound));
  EXPECT_FALSE(Accepts(unquoted));
}

}  // namespace
}  // namespace dtrain
