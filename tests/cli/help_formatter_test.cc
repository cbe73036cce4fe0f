// Tests the layout of --help: no line is wider than the terminal, no word is broken or lost, the man page is unchanged.
#include "framework/cli/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

TEST(HelpFormatter, TextsStayInTheirColumn) {
  const std::string name = "  --lr FLOAT" + std::string(22, ' ');
  const std::string below(34, ' ');
  EXPECT_EQ(WrapHelp(name + "one two three four five six seven\n", 60),
            name + "one two three four five\n" + below + "six seven\n");
  EXPECT_EQ(WrapHelp("short\n\n" + name + "x\n", 60), "short\n\n" + name + "x\n");
  EXPECT_EQ(WrapHelp(std::string(40, 'a') + " " + std::string(30, 'b') + "\n", 60),
            std::string(40, 'a') + "\n" + std::string(30, 'b') + "\n");
}

TEST(HelpFormatter, ALongWordStaysWhole) {
  const std::string name = "  --x" + std::string(29, ' ');
  const std::string word(50, 'w');
  EXPECT_EQ(WrapHelp(name + word + " end\n", 60),
            name + word + "\n" + std::string(34, ' ') + "end\n");
  EXPECT_EQ(WrapHelp(word + word + "\n", 60), word + word + "\n");
}

TEST(HelpFormatter, TheWidthIsOfTheTerminalAndAtLeastSixty) {
  for (const auto& [said, width] : std::vector<std::pair<const char*, size_t>>{
           {"132", 132}, {"80", 80}, {"20", 60}, {"wide", 100}, {nullptr, 100}}) {
    const ScopedVariable columns("COLUMNS", said);
    testing::internal::CaptureStdout();  // no terminal
    EXPECT_EQ(HelpWidth(), width);
    testing::internal::GetCapturedStdout();
  }
}

TEST(HelpFormatter, EveryCommandIsWrappedWithoutLosingAWord) {
  for (const char* const command : {"train", "predict", "export", "simulate", "slurm", "plan"}) {
    const ScopedVariable wide("COLUMNS", "10000");
    const std::string whole = RunCommand({command, "--help"}).out;
    const ScopedVariable narrow("COLUMNS", "80");
    const std::string wrapped = RunCommand({command, "--help"}).out;
    EXPECT_EQ(WordsOf(wrapped), WordsOf(whole)) << command;
    for (const std::string& line : LinesOf(wrapped)) {
      const bool one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
      EXPECT_TRUE(line.size() <= 80 || one_word) << line;
    }
  }
}

TEST(HelpFormatter, TheManPageHasItsOwnLayout) {
  const ScopedVariable wide("COLUMNS", "10000");
  const std::string whole = RunCommand({"manual"}).out;
  const ScopedVariable narrow("COLUMNS", "60");
  EXPECT_EQ(RunCommand({"manual"}).out, whole);
  EXPECT_THAT(whole, HasSubstr(".SH COMMANDS"));
}

}  // namespace
}  // namespace dtrain
