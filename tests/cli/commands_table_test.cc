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
  std::istringstream lines(help.substr(std::min(help.find("Subcommands:"), help.size())));
  std::set<std::string> names;
  static const std::regex row("^ {2}([a-z]+)( .*)?$");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, row)) names.insert(match[1]);
  }
  return names;
}

// Returns the first words of its rows and their alternatives: {"bench", "allreduce\|link"}.
std::vector<std::pair<std::string, std::string>> RowsOfTheTable() {
  std::istringstream lines(ReadFile(DTRAIN_SOURCE_DIR "/framework/cli/README.md"));
  std::vector<std::pair<std::string, std::string>> rows;
  static const std::regex row(R"(^\| `([a-z]+) ?([a-z\\|]*).*$)");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
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

}  // namespace
}  // namespace dtrain
