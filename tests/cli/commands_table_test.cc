// Tests that the table of commands is complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns the commands that `dtrain ARGUMENTS --help` lists.
std::set<std::string> CommandsOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--help");
  const std::string help = RunCommand(arguments).out;
  const std::string below = help.substr(std::min(help.find("Subcommands:"), help.size()));
  std::set<std::string> names;
  static const std::regex row("^ {2}([a-z]+)( .*)?$");
  std::smatch match;
  for (const std::string& line : LinesOf(below)) {
    if (std::regex_match(line, match, row)) names.insert(match[1]);
  }
  return names;
}

// Returns the first words of its rows and their alternatives: {"bench", "allreduce\|link"}.
std::vector<std::pair<std::string, std::string>> RowsOfTheTable() {
  std::vector<std::pair<std::string, std::string>> rows;
  static const std::regex row(R"(^\| `([a-z]+) ?([a-z\\|]*).*$)");
  std::smatch match;
  for (const std::string& line : LinesOf(ReadFile(DTRAIN_SOURCE_DIR "/framework/cli/README.md"))) {
    if (std::regex_match(line, match, row)) rows.emplace_back(match[1], match[2]);
  }
  return rows;
}

TEST(CommandsTable, EveryCommandHasARow) {
  const std::set<std::string> commands = CommandsOf({});
  EXPECT_THAT(commands, Contains("plan"));
  std::set<std::string> rows;
  for (const auto& [name, more] : RowsOfTheTable()) rows.insert(name);
  for (const std::string& command : commands) EXPECT_THAT(rows, Contains(command));
}

TEST(CommandsTable, TheRowOfBenchHasAllOfThem) {
  const std::set<std::string> benches = CommandsOf({"bench"});
  ASSERT_THAT(benches, Not(IsEmpty()));
  std::set<std::string> documented;
  for (const auto& [name, more] : RowsOfTheTable()) {
    if (name != "bench") continue;
    static const std::regex word("[a-z]+");
    for (std::sregex_iterator it(more.begin(), more.end(), word), end; it != end; ++it) {
      documented.insert(it->str());
    }
  }
  EXPECT_EQ(documented, benches);
}

struct OptionRow {
  std::vector<std::string> commands;
  std::string option;
  std::string values;  // type, limits and default as --help shows them
};

// A user reads the limits and defaults in --help; a change of one should be meant.
TEST(CommandsTable, OptionsHaveTheseLimitsAndDefaults) {
  const std::vector<OptionRow> rows = {
      {{"train", "simulate", "plan", "slurm", "bench exchange", "bench sums"},
       "--workers",
       "INT:INT in [1 - 65536]"},
      {{"bench allreduce", "bench link"}, "--workers", "INT:INT in [2 - 1024]=2"},
      {{"bench allreduce"}, "--per-node", "INT:NONNEGATIVE=0"},
      {{"bench allreduce"}, "--bytes", "INT:POSITIVE ..."},
      {{"bench step", "bench layers"}, "--model", "TEXT=lenet5"},
      {{"bench step", "bench layers"}, "--data", "TEXT=digits"},
      {{"bench step", "bench layers"}, "--batch", "INT:POSITIVE=64"},
      {{"bench step", "bench layers"}, "--threads", "INT:POSITIVE=1"},
      {{"bench step", "bench layers"}, "--seconds", "FLOAT:POSITIVE=2"},
      {{"bench topk"}, "--sizes", "INT:INT in [1 - 2000000000]=[1000000,10000000,100000000] ..."},
      {{"bench topk"}, "--density", "FLOAT:FLOAT in [1e-09 - 0.999999]=[0.001] ..."},
      {{"bench topk"}, "--seconds", "FLOAT:NONNEGATIVE=1"},
      {{"train"}, "--max-restarts", "INT:NONNEGATIVE"},
      {{"eval", "translate"}, "--beam", "INT:INT in [1 - 1000]=1"},
      {{"eval", "translate"}, "--max-length", "INT:INT in [1 - 10000]=50"},
      {{"predict"}, "--top", "INT:INT in [1 - 65536]=3"},
      {{"sweep"}, "--jobs", "INT:INT in [1 - 1024]=1"},
      {{"slurm"}, "--nodes", "INT:INT in [1 - 65536]"},
      {{"data fetch"}, "--stall-seconds", "INT:POSITIVE"},
      {{"time"}, "--iterations", "INT:INT in [1 - 1000000]=50"}};
  for (const OptionRow& row : rows) {
    for (const std::string& command : row.commands) {
      std::vector<std::string> words;
      std::istringstream parts(command);
      for (std::string part; parts >> part;) words.push_back(part);
      words.emplace_back("--help");
      const std::string help = RunCommand(words).out;
      const std::string wanted = "\n  " + row.option + " " + row.values;
      const size_t at = help.find(wanted);
      ASSERT_NE(at, std::string::npos) << command << wanted << "\n" << help;
      EXPECT_TRUE(help[at + wanted.size()] == ' ' || help[at + wanted.size()] == '\n')
          << command << wanted;
    }
  }
}

}  // namespace
}  // namespace dtrain
