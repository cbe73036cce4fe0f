// Tests tools/bundle.sh: it makes the archive, and its program runs from another folder, without
// this machine's Open MPI. tests/bundle.sh tests the rest in a machine without any package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "framework/core/file.h"
#include "framework/core/process.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Bundle : public ::testing::Test {
 protected:
  // Returns the command's exit code; its output is then in said_.
  int Run(const std::string& command) {
    const std::string file = folder_ / "said";
    const int status = std::system(
        ("cd " + folder_.path().string() + " && ( " + command + " ) >" + file + " 2>&1").c_str());
    said_ = ReadFile(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const TempFolder folder_;
  std::string said_;
};

TEST_F(Bundle, RunsFromAnyFolderByItself) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a build with sanitizers is not carried anywhere";
#endif
  if (Run("command -v patchelf") != 0) GTEST_SKIP() << "patchelf is not installed";
  ASSERT_EQ(Run(DTRAIN_SOURCE_DIR "/tools/bundle.sh --build " DTRAIN_BINARY_DIR " bundle.tar"), 0)
      << said_;
  ASSERT_EQ(Run("mkdir else && tar -C else -xf bundle.tar && mv else/dtrain-* else/bundle"), 0);

  EXPECT_EQ(Run("env -i LD_LIBRARY_PATH=/nowhere ldd else/bundle/bin/dtrain"), 0);
  EXPECT_THAT(said_,
              AllOf(HasSubstr("else/bundle/bin/../lib/libmpi.so"),
                    HasSubstr("else/bundle/bin/../lib/libdnnl.so"), Not(HasSubstr("not found"))));
  EXPECT_EQ(Run("env -i else/bundle/bin/dtrain --version"), 0);
  EXPECT_THAT(said_, HasSubstr("dtrain " + VersionAndRevision()));

  EXPECT_EQ(
      Run("env -i else/bundle/bin/dtrain train --config else/bundle/configs/runs/quickstart.yaml "
          "--set max_steps=2 --set data.train_samples=256 --set data.test_samples=64 "
          "--workers 2 --output run"),
      0)
      << said_;
  EXPECT_EQ(Run("env -i OPAL_PREFIX=/nowhere else/bundle/bin/dtrain doctor"), 0);
  EXPECT_THAT(said_, HasSubstr("else/bundle/bin/mpirun"));
}

}  // namespace
}  // namespace dtrain
