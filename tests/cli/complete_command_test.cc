// Tests the shells' completions, the command that they call, and the man page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Complete(std::vector<std::string> words) {
  words.insert(words.begin(), {"complete", "--"});
  return LinesOf(RunCommand(words).out);
}

TEST(Complete, CommandsAndOptions) {
  EXPECT_THAT(Complete({""}), AllOf(IsSupersetOf({"train", "data", "list"}),
                                    Not(Contains("complete")), Not(Contains("manual"))));
  EXPECT_THAT(Complete({"tra"}), ElementsAre("train", "translate"));
  EXPECT_THAT(Complete({"data", ""}), ElementsAre("list", "fetch", "verify"));
  EXPECT_THAT(Complete({"train", "--max"}), ElementsAre("--max-restarts"));
  EXPECT_THAT(Complete({"train", "--config", "x.yaml", "--dry-run", "--"}),
              AllOf(IsSupersetOf({"--config", "--workers", "--verbose"}), Each(StartsWith("--"))));
  EXPECT_THAT(Complete({"nonsense", "--o"}), ElementsAre());
}

TEST(Complete, ValuesOfOptions) {
  EXPECT_THAT(Complete({"train", "--device", ""}), ElementsAre("auto", "cpu", "cuda"));
  EXPECT_THAT(Complete({"train", "--workers", ""}), ElementsAre());
  EXPECT_THAT(Complete({"train", "--resume", ""}), ElementsAre("auto", "none", ":files"));
  EXPECT_THAT(Complete({"slurm", "--launcher", "m"}), ElementsAre("mpirun"));
  EXPECT_THAT(Complete({"eval", "--weights", ""}), ElementsAre(":files"));
  EXPECT_THAT(Complete({"train", "--config", "quick"}), ElementsAre("quickstart", ":files"));
  EXPECT_THAT(Complete({"train", "--cluster", "tian"}), ElementsAre("tianhe2", ":files"));
  EXPECT_THAT(Complete({"simulate", "--compare", "gssp", "ps_s"}), ElementsAre("ps_ssp"));
  // --set takes one value, and what follows is no other.
  EXPECT_THAT(Complete({"train", "--set", "a=1", ""}), ElementsAre());
  EXPECT_THAT(Complete({"predict", "a.jpg", "b.jpg", ""}), ElementsAre(":files"));
  EXPECT_THAT(Complete({"data", "fetch", "mnist", "cifar"}), ElementsAre("cifar10", "cifar100"));
}

TEST(Complete, NamesOfThings) {
  EXPECT_THAT(Complete({"list", "s"}), ElementsAre("solvers", "strategies"));
  EXPECT_THAT(Complete({"list", "strategies", "gs"}), ElementsAre("gssp"));
  EXPECT_THAT(Complete({"data", "fetch", "mn"}), ElementsAre("mnist"));
  EXPECT_THAT(Complete({"train", "--set", "model.name=lenet5"}),
              IsSupersetOf({"model.name=lenet5", "model.name=lenet5_caffe"}));
  EXPECT_THAT(Complete({"train", "--set", "strategy.name=ps_s"}),
              ElementsAre("strategy.name=ps_ssp"));
  EXPECT_THAT(Complete({"train", "--set", "data.name=cifar"}),
              ElementsAre("data.name=cifar10", "data.name=cifar100"));
  EXPECT_THAT(Complete({"train", "--set", "solver.l"}), Contains("solver.lr="));
  EXPECT_THAT(Complete({"train", "--set", "a=1", "--set", "collective=or"}),
              ElementsAre("collective=ordered"));
}

// Returns the suggestions of bash's function for `line`, one a line.
std::vector<std::string> ByBash(const std::string& line) {
  const TempFolder folder;
  const std::string script =
      folder.Write("ask.sh", "compopt() { :; }\nsource " DTRAIN_SOURCE_DIR
                             "/tools/completion/dtrain.bash\n"
                             "COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(" DTRAIN_BINARY_DIR
                             "/dtrain)\n"
                             "_dtrain\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const std::string out = (folder / "out").string();
  EXPECT_EQ(std::system(("bash " + script + " '" + line + "' >" + out).c_str()), 0);
  return LinesOf(ReadFile(out));
}

TEST(Complete, BashShowsWhatTheProgramSays) {
  EXPECT_THAT(ByBash("dtrain tra"), ElementsAre("train", "translate"));
  EXPECT_THAT(ByBash("dtrain data "), ElementsAre("list", "fetch", "verify"));
  EXPECT_THAT(ByBash("dtrain train --set strategy.name=ps_s"), ElementsAre("ps_ssp"));
  EXPECT_THAT(ByBash("dtrain eval --weights " DTRAIN_SOURCE_DIR "/LIC"),
              ElementsAre(DTRAIN_SOURCE_DIR "/LICENSE"));
}

int Code(ExitCode code) { return static_cast<int>(code); }

TEST(Manual, HasEveryCommandAndOption) {
  const std::string manual = RunCommand({"manual"}).out;
  EXPECT_THAT(manual, StartsWith(".TH DTRAIN 1 "));
  for (const std::string command : {"train", "data fetch", "bench allreduce", "doctor"}) {
    EXPECT_THAT(manual, HasSubstr("\n.SS \\fBdtrain " + command + "\\fR"));
  }
  EXPECT_THAT(manual, AllOf(HasSubstr("\\fB\\-v, \\-\\-verbose\\fR\n"),
                            HasSubstr("\\fB\\-\\-workers\\fR \\fIINT\\fR\n"),
                            HasSubstr("\\fB\\-\\-device\\fR \\fIauto|cpu|cuda\\fR\n"),
                            Not(HasSubstr("dtrain manual"))));
  EXPECT_THAT(manual, AllOf(HasSubstr("per sample (default: 3)\n"),
                            HasSubstr("\\fBdtrain predict\\fR \\fB\\-\\-weights\\fR "
                                      "\\fIFILE\\fR \\fIfiles\\fR\n")));
  EXPECT_THAT(
      manual,
      HasSubstr(fmt::format(
          "\n{} done, {} internal error, {} usage or config, {} data, {} a peer was lost, "
          "{} diverged, {} checkpoint or disk,\n{} stalled, {} stopped by a signal and ready",
          Code(ExitCode::kDone), Code(ExitCode::kInternal), Code(ExitCode::kUsage),
          Code(ExitCode::kData), Code(ExitCode::kPeerLost), Code(ExitCode::kDiverged),
          Code(ExitCode::kCheckpoint), Code(ExitCode::kStalled), Code(ExitCode::kStopped))));
  // A request starts with a dot; text never does.
  static const std::regex request(R"(\.(TH|SH|SS|TP|B|BR|I) .*|\.TP)");
  for (const std::string& line : LinesOf(manual)) {
    EXPECT_FALSE(line.starts_with('\'')) << line;
    if (line.starts_with('.')) {
      EXPECT_TRUE(std::regex_match(line, request)) << line;
    }
  }
}

}  // namespace
}  // namespace dtrain
