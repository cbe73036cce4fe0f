// The commands and options of the program, as CLI11 holds them, for what walks over them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtrain {

// In the order of --help; those without a group are hidden.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);  // -h among them
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command);

// "dtrain data fetch"
std::string FullName(const CLI::App& command);

bool TakesValue(const CLI::Option& option);

// {"cpu", "cuda"} where these are all that the option takes: of its check, "DEVICE:{cpu,cuda}", or of its type,
// "auto|none|PATH", of which words in capitals stand for others.  Empty where it takes anything.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// What a command line says up to some word.
struct CommandPlace {
  const CLI::App* command = nullptr;    // the last one named; the program itself before any
  const CLI::Option* option = nullptr;  // that wants the next word as its value
  size_t positionals = 0;               // words of `command` so far that are no options
  bool only_positionals = false;        // after "--"
  std::string unknown;                  // the first command or option that there is not, and where
  const CLI::App* unknown_at = nullptr;
};

// Walks over the words behind the program's name.
CommandPlace FollowWords(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace dtrain
