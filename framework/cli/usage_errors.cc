#include "framework/cli/usage_errors.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "framework/cli/command_tree.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

std::string WithoutDashes(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : VisibleCommands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : OptionsOf(app)) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::string HintOf(const CLI::App& app, const std::string& nearest) {
  return fmt::format("{}{} --help shows all", DidYouMean(nearest), FullName(app));
}

// Finds a value that the check of its option, "{cpu,cuda}", does not allow.
std::optional<UsageError> FindWrongChoice(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_type_name().find('{') == std::string::npos) continue;
    const std::vector<std::string> choices = ChoicesOf(*option);
    for (const std::string& value : option->results()) {
      if (std::ranges::find(choices, value) != choices.end()) continue;
      const std::string at = option->get_positional() ? "" : " " + option->get_name();
      return UsageError(fmt::format("{}{} has no choice '{}'", FullName(command), at, value),
                        SuggestName(value, choices));
    }
  }
  for (const CLI::App* below : command.get_subcommands()) {
    if (auto error = FindWrongChoice(*below)) return error;
  }
  return std::nullopt;
}

}  // namespace

std::optional<UsageError> FindUsageError(const CLI::App& app,
                                         const std::vector<std::string>& words) {
  const CommandPlace place = FollowWords(app, words);
  if (place.unknown_at == nullptr) return FindWrongChoice(app);
  const CLI::App& at = *place.unknown_at;
  if (place.unknown[0] != '-') {
    return UsageError(fmt::format("{} has no command '{}'", FullName(at), place.unknown),
                      HintOf(at, NearestName(place.unknown, CommandNames(at))));
  }
  const std::string nearest = NearestName(WithoutDashes(place.unknown), OptionNames(at));
  return UsageError(fmt::format("{} has no option '{}'", FullName(at), place.unknown),
                    HintOf(at, nearest.empty() ? "" : "--" + nearest));
}

}  // namespace dtrain
