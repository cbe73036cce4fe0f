// Declares functions that walk over the program's commands and options, as CLI11 holds them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtrain {

// Returns the subcommands in the order of --help.  Commands without a group are hidden.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);  // including -h
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command);

// Returns the command with its parents: "dtrain data fetch".
std::string FullName(const CLI::App& command);

bool TakesValue(const CLI::Option& option);

// Returns the allowed values of an option that takes only certain ones, for example {"cpu", "cuda"}.  They come from
// its check, "DEVICE:{cpu,cuda}", or from its type, "auto|none|PATH", where words in capitals stand for other values.
// Returns an empty list if the option takes any value.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// Holds the meaning of a command line up to some word.
struct CommandPlace {
  const CLI::App* command = nullptr;    // the last command named; the program itself before any
  const CLI::Option* option = nullptr;  // the option whose value is the next word; null: none
  size_t positionals = 0;               // number of positional arguments of `command` so far
  bool only_positionals = false;        // after "--"
  // Names the first unknown command or option, and the command in which it was found.
  std::string unknown;
  const CLI::App* unknown_at = nullptr;
  std::string stray;  // the first positional argument of a command that takes none
};

// Parses the words after the program's name.
CommandPlace FollowWords(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace dtrain
