// Tests tests/check_skips.sh on made-up logs: skips are counted by reason; a reason that is not on
// the list, or whose condition does not hold, is a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "framework/core/file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns a test's part of LastTest.log.
std::string Block(const std::string& name, const std::string& output) {
  return "1/3 Testing: " + name + "\n1/3 Test: " + name + "\nCommand: \"x_tests\"\nOutput:\n" +
         "----------\n[ RUN      ] A.B\n" + output +
         "<end of output>\nTest time =   0.02 sec\n----------\n\n";
}

std::string Passed(const std::string& name) { return Block(name, "[       OK ] A.B (0 ms)\n"); }

std::string Skipped(const std::string& name, const std::string& reason) {
  return Block(name, "../../tests/a_test.cc:9: Skipped\n" + reason +
                         "\n[  SKIPPED ] A.B (0 ms)\n[  PASSED  ] 0 tests.\n"
                         "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n");
}

constexpr char kNoData[] = "DTRAIN_DATA does not name a folder with mnist/ in it";

struct Verdict {
  int code = 0;
  std::string said;
};

class CheckSkips : public ::testing::Test {
 protected:
  Verdict Check(const std::string& log, const std::string& options = "") const {
    const std::string path = folder_.Write("LastTest.log", log);
    const int status = std::system((DTRAIN_SOURCE_DIR "/tests/check_skips.sh " + options + " " +
                                    path + " >" + (folder_ / "said").string() + " 2>&1")
                                       .c_str());
    return {WEXITSTATUS(status), ReadFile(folder_ / "said")};
  }

  const ScopedVariable data_{"DTRAIN_DATA", nullptr};
  const TempFolder folder_;
};

TEST_F(CheckSkips, TestsOfOneProcessAreCountedOneByOne) {
  const std::string skip = std::string("../../tests/a_test.cc:9: Skipped\n") + kNoData + "\n";
  const Verdict verdict = Check(Block(
      "a.part0", skip + "[  SKIPPED ] A.B (0 ms)\n[ RUN      ] A.C\n[       OK ] A.C (0 ms)\n" +
                     "[ RUN      ] A.D\n../../tests/a_test.cc:9: Skipped\nthe moon\n" +
                     "[  SKIPPED ] A.D (0 ms)\n[  PASSED  ] 1 test.\n" +
                     "[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.B\n[  SKIPPED ] A.D\n"));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said, AllOf(HasSubstr("skipped: 2\n"), HasSubstr("a.part0 A.D: the moon"),
                                  HasSubstr("a.part0 A.B: " + std::string(kNoData))));
}

TEST_F(CheckSkips, NothingSkippedIsFine) {
  const Verdict verdict = Check(Passed("a.One") + Passed("a.Two"));
  EXPECT_EQ(verdict.code, 0);
  EXPECT_EQ(verdict.said, "skipped: 0\n");
}

TEST_F(CheckSkips, SkipsOnTheListAreCountedByReason) {
  const Verdict verdict =
      Check(Skipped("a.One", kNoData) + Passed("a.Two") + Skipped("b.Three", kNoData) +
            Skipped("b.Four", "DTRAIN_DATA does not name a folder with cifar10/ in it"));
  EXPECT_EQ(verdict.code, 0) << verdict.said;
  EXPECT_EQ(verdict.said,
            "skipped: 3\n"
            "     1  DTRAIN_DATA does not name a folder with cifar10/ in it\n"
            "     2  DTRAIN_DATA does not name a folder with mnist/ in it\n");
}

TEST_F(CheckSkips, AReasonThatIsNotOnTheListFails) {
  const Verdict verdict = Check(Skipped("a.One", kNoData) + Skipped("a.Two", "not today"));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said,
              AllOf(HasSubstr("skipped: 2\n"), HasSubstr("not today  <- not in "),
                    HasSubstr("  a.Two: not today\n"), Not(HasSubstr("mnist/ in it  <-"))));
}

TEST_F(CheckSkips, APartOfAReasonIsNotTheReason) {
  EXPECT_EQ(Check(Skipped("a.One", std::string(kNoData) + " or elsewhere")).code, 1);
}

TEST_F(CheckSkips, WithDataNoTestIsSkippedForWantOfIt) {
  const ScopedVariable data("DTRAIN_DATA", "/somewhere");
  const Verdict verdict = Check(Skipped("a.One", kNoData));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said, HasSubstr("for no-data alone, which does not hold here"));
}

TEST_F(CheckSkips, ASkipWithoutAReasonFails) {
  const Verdict verdict = Check(Skipped("a.One", ""));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said, HasSubstr("no reason given  <- not in"));
}

// One CTest name may run many tests; CTest then reports it as passed.
TEST_F(CheckSkips, ASkipAmongOthersIsSeen) {
  const Verdict verdict = Check(Block("mpi.np2",
                                      "a_test.cc:9: Skipped\nnot today\n"
                                      "[  SKIPPED ] A.B (0 ms)\n[  PASSED  ] 7 tests.\n"));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said, HasSubstr("mpi.np2: not today"));
}

TEST_F(CheckSkips, ConditionsAreNamed) {
  const std::string list = folder_.Write("list", "# why\n\nno-weather: not today\n");
  const Verdict verdict = Check(Skipped("a.One", "not today"), "--list " + list);
  EXPECT_NE(verdict.code, 0);
  EXPECT_THAT(verdict.said, HasSubstr("no condition is named 'no-weather'"));
}

TEST_F(CheckSkips, AMissingLogFails) {
  EXPECT_EQ(Check("", (folder_ / "missing/LastTest.log").string()).code, 2);
}

// The script must understand GoogleTest's real output: the test runs its own program once more, in
// which it skips itself.
TEST_F(CheckSkips, ReadsWhatGoogleTestWrites) {
  constexpr char kSkipped[] = "DTRAIN_TEST_IS_SKIPPED";
  if (std::getenv(kSkipped) != nullptr) GTEST_SKIP() << "by this test alone";
  const ScopedVariable skipped(kSkipped, "1");
  const std::string output = folder_ / "output";
  // The child must not run only its shard of the tests.
  const std::string self = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " +
                           std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string filter = " --gtest_filter=CheckSkips.ReadsWhatGoogleTestWrites >";
  ASSERT_EQ(std::system((self + filter + output).c_str()), 0);
  const Verdict verdict = Check(Block("a.One", ReadFile(output)));
  EXPECT_EQ(verdict.code, 1);
  EXPECT_THAT(verdict.said, HasSubstr("     1  by this test alone  <- not in"));
}

}  // namespace
}  // namespace dtrain
