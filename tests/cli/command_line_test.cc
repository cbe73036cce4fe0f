// Tests what all commands share: unknown names, -v and -q, configs by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/core/log.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Misspelt {
  std::vector<std::string> words;
  std::string what;
  std::string nearest;  // "": no name is similar
};

TEST(CommandLine, AMisspeltNameIsAnsweredWithTheNearest) {
  const std::vector<Misspelt> all = {
      {{"trian"}, "dtrain has no command 'trian'", "train"},
      {{"trian", "--config", "x.yaml"}, "dtrain has no command 'trian'", "train"},
      {{"data", "fecth", "mnist"}, "dtrain data has no command 'fecth'", "fetch"},
      {{"train", "--confg", "x.yaml"}, "dtrain train has no option '--confg'", "--config"},
      {{"train", "--confg=x.yaml"}, "dtrain train has no option '--confg'", "--config"},
      {{"train", "-config", "x.yaml"}, "dtrain train has no option '-config'", "--config"},
      {{"train", "--worker", "2", "--config", "x"}, "no option '--worker'", "--workers"},
      {{"data", "fetch", "--stall_seconds", "3", "mnist"},
       "dtrain data fetch has no option '--stall_seconds'",
       "--stall-seconds"},
      {{"--versoin"}, "dtrain has no option '--versoin'", "--version"},
      {{"train", "--config", "none", "--workr", "2"}, "no option '--workr'", "--workers"},
      {{"train", "--zzzzzz"}, "dtrain train has no option '--zzzzzz'", ""},
      {{"qqqqqq"}, "dtrain has no command 'qqqqqq'", ""}};
  for (const Misspelt& one : all) {
    const CommandOutcome outcome = RunCommand(one.words);
    EXPECT_EQ(outcome.code, 2) << one.what;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(one.what), HasSubstr("--help shows all")));
    if (one.nearest.empty()) {
      EXPECT_THAT(outcome.err, Not(HasSubstr("did you mean")));
    } else {
      EXPECT_THAT(outcome.err, HasSubstr("did you mean '" + one.nearest + "'?"));
    }
  }
}

// The value of an option is not a name, whatever it looks like.
TEST(CommandLine, AValueIsNotTakenForAMisspeltName) {
  EXPECT_THAT(RunCommand({"train", "--output", "trian"}).err, HasSubstr("--config is required"));
  EXPECT_THAT(RunCommand({"slurm", "--partition=-p"}).err, HasSubstr("--config is required"));
  EXPECT_THAT(RunCommand({"train"}).err, HasSubstr("--config is required"));
  EXPECT_THAT(RunCommand({"list", "modles"}).err,
              AllOf(HasSubstr("modles"), Not(HasSubstr("has no command"))));
}

TEST(CommandLine, AValueThatAnOptionDoesNotTakeIsAnsweredWithTheNearest) {
  const CommandOutcome list = RunCommand({"list", "layer"});
  EXPECT_EQ(list.code, 2);
  EXPECT_THAT(list.err, AllOf(HasSubstr("dtrain list has no choice 'layer'"),
                              HasSubstr("did you mean 'layers'?"), HasSubstr("solvers")));
  const CommandOutcome split = RunCommand({"eval", "--weights", "x", "--split", "tset"});
  EXPECT_EQ(split.code, 2);
  EXPECT_THAT(split.err, AllOf(HasSubstr("dtrain eval --split has no choice 'tset'"),
                               HasSubstr("did you mean 'test'?")));
}

TEST(CommandLine, AConfigThatIsNotThereIsAnsweredWithTheNearestFileOrName) {
  const TempFolder folder;
  const std::string mine = folder.Write("mine.yaml", "");
  const CommandOutcome beside = RunCommand({"check", "--config", (folder / "min.yaml").string()});
  EXPECT_EQ(beside.code, 2);
  EXPECT_THAT(beside.err, HasSubstr("did you mean '" + mine + "'?"));
  for (const char* given : {"quikstart", "quikstart.yaml"}) {
    EXPECT_THAT(RunCommand({"check", "--config", given}).err,
                HasSubstr("did you mean 'quickstart'?"));
  }
  EXPECT_THAT(RunCommand({"check", "--config", "zzzzzzzzzz"}).err,
              AllOf(HasSubstr("allowed: "), Not(HasSubstr("did you mean"))));
}

TEST(CommandLine, VerboseAndQuietSetWhatIsLogged) {
  const TempFolder folder;
  const std::string config = folder.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                                                      "/configs/models/lenet5.yaml}\n"
                                                      "data: {name: digits}\n");
  const CommandOutcome plain = RunCommand({"check", "--config", config});
  EXPECT_EQ(log::GetLevel(), log::Level::kInfo);
  EXPECT_THAT(plain.err, Not(HasSubstr("debug")));
  const CommandOutcome verbose = RunCommand({"check", "-v", "--config", config});
  EXPECT_EQ(log::GetLevel(), log::Level::kDebug);
  EXPECT_EQ(LogArguments(), std::vector<std::string>{"--verbose"});
  const CommandOutcome quiet = RunCommand({"check", "--quiet", "--config", config});
  EXPECT_EQ(log::GetLevel(), log::Level::kWarning);
  EXPECT_EQ(LogArguments(), std::vector<std::string>{"--quiet"});
  EXPECT_THAT(quiet.err, IsEmpty());
  EXPECT_EQ(quiet.out, plain.out);
  EXPECT_EQ(verbose.out, plain.out);
  RunCommand({"--version"});
  EXPECT_THAT(LogArguments(), IsEmpty());
  EXPECT_EQ(RunCommand({"check", "-v", "-q", "--config", config}).code, 2);
  const CommandOutcome both = RunCommand({"check", "-vq", "--config", config});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, AllOf(HasSubstr("excludes"), Not(HasSubstr("no option"))));
}

// The configs in the source tree are found from everywhere, because the tests' program is inside it.
TEST(CommandLine, AConfigIsFoundByNameAndByItsPathInTheTree) {
  for (const char* config : {"quickstart", "configs/runs/quickstart.yaml",
                             DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml"}) {
    const CommandOutcome outcome = RunCommand({"check", "--config", config});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("name: digits")) << config;
  }
}

TEST(CommandLine, AConfigThatIsNotThereIsReportedWithWhereItWasLookedFor) {
  const CommandOutcome name = RunCommand({"check", "--config", "quikstart"});
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.err, AllOf(HasSubstr("there is no config 'quikstart'"),
                              HasSubstr("did you mean 'quickstart'?"), HasSubstr("looked for in"),
                              HasSubstr("configs/runs")));
  const CommandOutcome path = RunCommand({"check", "--config", "runs/none.yaml"});
  EXPECT_EQ(path.code, 2);
  EXPECT_THAT(path.err,
              AllOf(HasSubstr("there is no config 'runs/none.yaml'"),
                    HasSubstr("looked for in the working directory"), HasSubstr("share/dtrain")));
  const TempFolder folder;
  EXPECT_THAT(RunCommand({"check", "--config", folder / "missing.yaml"}).err,
              AllOf(HasSubstr("there is no config"), Not(HasSubstr("looked for"))));
}

}  // namespace
}  // namespace dtrain
