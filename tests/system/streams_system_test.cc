// Tests commands with an unusual stdin, stdout or stderr.
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class StreamsTest : public SystemTest {
 protected:
  // Runs a shell command, with $DTRAIN for the program, and returns its exit status; `err` has its output.
  int Shell(const std::string& command) {
    const std::string all = "export DTRAIN='" + Program() + "' CONFIGS='" + Configs() +
                            "/runs'; cd '" + folder_.string() + "'; " + command + " 2>err";
    const int status = std::system(("bash -c '" + all + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string Said() const { return Slurp(folder_ / "err"); }
};

TEST_F(StreamsTest, AResultThatCannotBeWrittenIsCodeSix) {
  for (const std::string command :
       {"list layers", "check --config $CONFIGS/quickstart.yaml", "doctor", "--help"}) {
    EXPECT_EQ(Shell("$DTRAIN " + command + " >/dev/full"), 6) << command;
    EXPECT_THAT(Said(), HasSubstr("cannot write to standard output"));
  }
}

TEST_F(StreamsTest, AReaderThatLeavesEndsACommandSilently) {
  EXPECT_EQ(
      Shell("set -o pipefail; for i in 1 2 3 4 5 6 7 8; do $DTRAIN list layers; done | head -1"),
      141);
  EXPECT_EQ(Said(), "");
}

TEST_F(StreamsTest, ATrainingRunGoesOnWithoutAReader) {
  EXPECT_EQ(
      Shell("set -o pipefail; $DTRAIN train --config $CONFIGS/quickstart.yaml --set max_steps=3 "
            "--output run | true"),
      0)
      << Said();
  EXPECT_TRUE(fs::exists(folder_ / "run/summary.json"));
}

TEST_F(StreamsTest, WhatIsClosedIsNoFileOfTheRun) {
  EXPECT_EQ(Shell("$DTRAIN train --config $CONFIGS/quickstart.yaml --set max_steps=3 --output run "
                  "<&- >&- 2>&-; code=$?; grep -c info run/metrics.jsonl >found; exit $code"),
            0);
  EXPECT_EQ(Slurp(folder_ / "found"), "0\n") << "the log is not in it";
}

TEST_F(StreamsTest, AFileAboveTheLimitIsAnError) {
  EXPECT_EQ(
      Shell("ulimit -f 100; $DTRAIN train --config $CONFIGS/quickstart.yaml --set max_steps=3 "
            "--output run >/dev/null"),
      6);
  EXPECT_THAT(Said(), HasSubstr("File too large"));
}

TEST_F(StreamsTest, AConfigMayComeThroughAPipe) {
  EXPECT_EQ(Shell("$DTRAIN check --config <(cat $CONFIGS/quickstart.yaml) >out"), 0) << Said();
  EXPECT_THAT(Slurp(folder_ / "out"), HasSubstr("name: lenet5"));
}

TEST_F(StreamsTest, AConfigThatIsNoTextIsCodeTwo) {
  EXPECT_EQ(Shell("ln -s loop loop; true"), 0);
  const std::vector<std::string> configs = {"/dev/zero", "loop", "/", std::string(5000, 'a')};
  for (const std::string& config : configs) {
    EXPECT_EQ(Shell("$DTRAIN check --config " + config), 2) << config;
    EXPECT_THAT(Said(), HasSubstr("cannot read "));
  }
}

}  // namespace
}  // namespace dtrain
