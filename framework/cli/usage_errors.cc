#include "framework/cli/usage_errors.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "framework/cli/command_tree.h"
#include "framework/config/other_tools.h"
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

struct Synonym {
  const char* theirs;
  const char* ours;
};

// Commands of other tools.
constexpr Synonym kCommands[] = {
    {"test", "eval"},           {"evaluate", "eval"}, {"validate", "check"}, {"infer", "predict"},
    {"inference", "predict"},   {"fit", "train"},     {"run", "train"},      {"convert", "export"},
    {"download", "data fetch"}, {"profile", "time"}};

// Options of other tools' training programs that are keys of the config here.
constexpr Synonym kSettings[] = {{"lr", "solver.lr"},
                                 {"learning-rate", "solver.lr"},
                                 {"momentum", "solver.momentum"},
                                 {"weight-decay", "solver.weight_decay"},
                                 {"wd", "solver.weight_decay"},
                                 {"optimizer", "solver.name"},
                                 {"solver", "solver.name"},
                                 {"epoch", "epochs"},
                                 {"epochs", "epochs"},
                                 {"num-epochs", "epochs"},
                                 {"max-epochs", "epochs"},
                                 {"max-steps", "max_steps"},
                                 {"batch", "batch"},
                                 {"batch-size", "batch"},
                                 {"seed", "seed"},
                                 {"threads", "threads"},
                                 {"precision", "precision"},
                                 {"strategy", "strategy.name"},
                                 {"collective", "collective"},
                                 {"compressor", "compress.name"},
                                 {"model", "model.name"},
                                 {"arch", "model.name"},
                                 {"data", "data.name"},
                                 {"dataset", "data.name"}};

// Options of mpirun, srun, torchrun and horovodrun that give the number of processes.
constexpr const char* kProcesses[] = {"n", "np", "ntasks", "nproc", "nproc-per-node", "num-proc"};

std::string OursOf(std::span<const Synonym> synonyms, const std::string& name) {
  for (const auto& [theirs, ours] : synonyms) {
    if (name == theirs) return ours;
  }
  return "";
}

bool HasOption(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

// Returns the value of an option: the rest of its word after "=", or the next word; "" if there is none.
std::string ValueGiven(const std::vector<std::string>& words, const std::string& option) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
    const bool followed = words[i] == option && i + 1 < words.size();
    if (followed && !words[i + 1].starts_with('-')) return words[i + 1];
  }
  return "";
}

// True if this call may have --set; that of some commands needs --config.
bool TakesSettings(const CLI::App& command, const std::vector<std::string>& words) {
  const CLI::Option* const set = command.get_option_no_throw("--set");
  return set != nullptr && (set->get_needs().empty() || !ValueGiven(words, "--config").empty());
}

// Returns what to write for an option of another tool: "--set solver.lr=0.1"; "" if the command has nothing like it.
std::string OursFor(const CLI::App& command, const std::vector<std::string>& words,
                    const std::string& option) {
  const std::string value = ValueGiven(words, option);
  std::string name = WithoutDashes(option);
  std::ranges::replace(name, '_', '-');
  if (std::ranges::find(kProcesses, name) != std::end(kProcesses)) {
    if (!HasOption(command, "--workers")) return "";
    return "--workers " + (value.empty() ? "N" : ShellWord(value));
  }
  if (name.starts_with("gpus") && HasOption(command, "--gres")) {
    return "--gres gpu:" + (value.empty() ? "N" : ShellWord(value));
  }
  const std::string key = OursOf(kSettings, name);
  if (key.empty() || !TakesSettings(command, words)) return "";
  return "--set " + (value.empty() ? key + "=VALUE" : ShellWord(key + "=" + value));
}

// Reports an unknown command or option.
UsageError UnknownError(const CommandPlace& place, const std::vector<std::string>& words) {
  const CLI::App& at = *place.unknown_at;
  if (place.unknown[0] != '-') {
    const std::string ours =
        at.get_parent() == nullptr ? OursOf(kCommands, place.unknown) : std::string();
    return UsageError(
        fmt::format("{} has no command '{}'", FullName(at), place.unknown),
        HintOf(at, ours.empty() ? NearestName(place.unknown, CommandNames(at)) : "dtrain " + ours));
  }
  const std::string what = fmt::format("{} has no option '{}'", FullName(at), place.unknown);
  const std::string ours = OursFor(at, words, place.unknown);
  if (!ours.empty()) return UsageError(what, "write " + ours);
  const std::string nearest = NearestName(WithoutDashes(place.unknown), OptionNames(at));
  return UsageError(what, HintOf(at, nearest.empty() ? "" : "--" + nearest));
}

// Returns what to write for a word that belongs to no option.
std::string HintOfStray(const CLI::App& command, const std::string& word,
                        const std::vector<std::string>& words) {
  const size_t name_end = word.find('=');
  if (name_end != std::string::npos && TakesSettings(command, words)) {
    const std::string key = OursOf(kSettings, word.substr(0, name_end));
    return "write --set " + ShellWord(key.empty() ? word : key + word.substr(name_end));
  }
  const CLI::Option* const config = command.get_option_no_throw("--config");
  const bool is_config = word.ends_with(".yaml") || word.ends_with(".yml") ||
                         !HasOption(command, "--weights") ||
                         (config != nullptr && config->get_required());
  const std::string option = is_config ? "--config" : "--weights";
  const bool lacks = HasOption(command, option) && ValueGiven(words, option).empty();
  return lacks ? "write " + option + " " + ShellWord(word) : HintOf(command, "");
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
                        config::SuggestChoice(value, choices));
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
  if (place.unknown_at != nullptr) return UnknownError(place, words);
  if (!place.stray.empty()) {
    return UsageError(
        fmt::format("{} takes no argument '{}'", FullName(*place.command), place.stray),
        HintOfStray(*place.command, place.stray, words));
  }
  return FindWrongChoice(app);
}

}  // namespace dtrain
