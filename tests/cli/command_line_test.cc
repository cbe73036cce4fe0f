// Tests what all commands share: unknown names, -v and -q, configs by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

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

// Other tools have options for what the config says here.
TEST(CommandLine, AnOptionOfOtherToolsIsAnsweredWithWhatToWrite) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"train", "--config", "quickstart", "--lr", "0.1"}, "write --set solver.lr=0.1"},
      {{"train", "--config", "quickstart", "--epochs", "3"}, "write --set epochs=3"},
      {{"train", "--config", "quickstart", "--batch-size=2"}, "write --set batch=2"},
      {{"train", "--config", "quickstart", "--batch_size", "2"}, "write --set batch=2"},
      {{"train", "--config", "quickstart", "--np", "2"}, "write --workers 2"},
      {{"train", "--config", "quickstart", "--ntasks", "2"}, "write --workers 2"},
      {{"train", "--config", "quickstart", "lr=0.1"}, "write --set solver.lr=0.1"},
      {{"train", "-n", "4", "--config", "quickstart"}, "write --workers 4"},
      {{"train", "-np", "4", "--config", "quickstart"}, "write --workers 4"},
      {{"simulate", "--strategy", "ps_ssp", "--config", "x"}, "write --set strategy.name=ps_ssp"},
      {{"train", "--lr"}, "write --set solver.lr=VALUE"},
      {{"train", "mine.yaml"}, "write --config mine.yaml"},
      {{"train", "--config", "quickstart", "epochs=3"}, "write --set epochs=3"},
      {{"check", "quickstart"}, "write --config quickstart"},
      {{"check", "--config", "quickstart", "b.yaml"}, "dtrain check --help shows all"},
      {{"eval", "runs/mine"}, "write --weights runs/mine"},
      {{"eval", "--weights", "runs/mine", "mine.yaml"}, "write --config mine.yaml"},
      {{"slurm", "--config", "quickstart", "--gpus-per-node", "2"}, "write --gres gpu:2"},
      {{"test"}, "did you mean 'dtrain eval'?"},
      {{"doctor", "now"}, "dtrain doctor --help shows all"}};
  for (const auto& [words, hint] : all) {
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 2) << hint;
    EXPECT_THAT(outcome.err, HasSubstr(hint));
  }
  EXPECT_THAT(RunCommand({"doctor", "--lr", "0.1"}).err, Not(HasSubstr("--set")));
  EXPECT_THAT(RunCommand({"predict", "--weights", "w", "--batch-size", "2"}).err,
              Not(HasSubstr("--set")))
      << "it needs --config";
}

TEST(CommandLine, AnEmptyOutputIsRefused) {
  for (const std::vector<std::string>& output :
       {std::vector<std::string>{"--output", ""}, {"--output="}}) {
    std::vector<std::string> words = {"train", "--config", "quickstart"};
    words.insert(words.end(), output.begin(), output.end());
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--output is empty"));
  }
}

// Every key and command that a hint names exists.
TEST(CommandLine, HintsForOtherToolsNameKeysAndCommands) {
  for (const char* option :
       {"lr",         "learning-rate", "momentum", "weight-decay", "wd",         "optimizer",
        "solver",     "epoch",         "epochs",   "num-epochs",   "max-epochs", "max-steps",
        "batch",      "batch-size",    "seed",     "threads",      "precision",  "strategy",
        "collective", "compressor",    "model",    "arch",         "data",       "dataset"}) {
    const std::string err = RunCommand({"train", std::string("--") + option, "7"}).err;
    const size_t begin = err.find("write --set "), end = err.find("=7", begin);
    ASSERT_NE(end, std::string::npos) << option << ": " << err;
    const std::string key = err.substr(begin + 12, end - begin - 12);
    EXPECT_THAT(RunCommand({"complete", "--", "train", "--set", key}).out, HasSubstr(key + "="))
        << option;
  }
  for (const char* command : {"test", "evaluate", "validate", "infer", "inference", "fit", "run",
                              "convert", "download", "profile"}) {
    const std::string err = RunCommand({command}).err;
    const size_t begin = err.find("did you mean 'dtrain "), end = err.find("'?", begin);
    ASSERT_NE(end, std::string::npos) << command << ": " << err;
    std::istringstream ours(err.substr(begin + 21, end - begin - 21));
    std::vector<std::string> words{std::istream_iterator<std::string>(ours), {}};
    words.emplace_back("--help");
    EXPECT_EQ(RunCommand(words).code, 0) << command;
  }
}

// stdout has only results, so a script that reads it never takes an error for one.
TEST(CommandLine, WithJsonAnErrorIsOneLineOfJsonOnStderr) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"check", "--json", "--config", "quickstart", "--set", "epochs=none"}, "epochs"},
      {{"check", "--json"}, "--config is required"},
      {{"train", "--json", "--config", "quickstart", "--lr", "3"}, "no option '--lr'"},
      {{"ckpt", "info", "--json", "there-is-no-file"}, "there-is-no-file"}};
  for (const auto& [words, what] : all) {
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    const auto error = nlohmann::json::parse(outcome.err).at("error");
    EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr(what));
    EXPECT_TRUE(error.at("hint").is_string());
    EXPECT_EQ(error.at("exit_code"), outcome.code) << what;
  }
  const CommandOutcome text = RunCommand({"check", "--config", "none", "-v"});
  EXPECT_THAT(text.err, AllOf(HasSubstr("error"), Not(HasSubstr("exit_code"))));
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
  EXPECT_THAT(RunCommand({"train", "--config", "quickstart", "--device", "gpu"}).err,
              HasSubstr("did you mean 'cuda'?"));
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
