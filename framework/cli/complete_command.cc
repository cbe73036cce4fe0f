// `dtrain complete -- WORD...`: prints the possible completions of the last word; hidden.  The completions of the
// shells (tools/completion) call it, so they know every command, option and name that the program knows.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include "framework/cli/command.h"
#include "framework/cli/command_tree.h"
#include "framework/data/dataset.h"
#include "framework/setup/locate_model.h"
#include "framework/strategies/strategy.h"

namespace dtrain {
namespace {

using Names = std::vector<std::string>;

// Tells the shell that file names are possible too.
constexpr char kFiles[] = ":files";

Names NamesOf(const std::map<std::string, std::filesystem::path>& files) {
  Names names;
  for (const auto& [name, file] : files) names.push_back(name);
  return names;
}

// Returns every key of a config, "solver.lr", with its allowed values if there is a list of them.
std::vector<config::KeyHelp> ConfigKeys() {
  config::Document document = config::Document::Empty();
  try {
    ReadRunConfig(document);
  } catch (const Error&) {  // a model and data are missing
  }
  return document.Keys();
}

Names ValuesOf(const config::KeyHelp& key) {
  if (key.path == "model.name") return NamesOf(NamedModels(""));
  if (key.type == "true or false") return {"true", "false"};
  Names values;
  constexpr std::string_view kOneOf = "one of ";
  if (!key.range.starts_with(kOneOf)) return values;
  std::istringstream list(key.range.substr(kOneOf.size()));
  for (std::string value; std::getline(list >> std::ws, value, ',');) values.push_back(value);
  return values;
}

// Completes --set: "solver.lr=", and after the "=" the allowed values of the key.
Names Settings(const std::string& word) {
  const size_t equals = word.find('=');
  Names settings;
  for (const config::KeyHelp& key : ConfigKeys()) {
    if (equals == std::string::npos) settings.push_back(key.path + "=");
    if (key.path != word.substr(0, equals)) continue;
    for (const std::string& value : ValuesOf(key)) settings.push_back(key.path + "=" + value);
  }
  return settings;
}

Names ValuesOf(const CLI::App& command, const CLI::Option& option, const std::string& word) {
  const std::string name = option.get_single_name();
  if (name == "config" || name == "cluster") {
    Names names = NamesOf(name == "config" ? NamedConfigs() : NamedClusters(""));
    names.emplace_back(kFiles);
    return names;
  }
  if (name == "set") return Settings(word);
  if (name == "compare") return StrategyRegistry::Names();
  if (command.get_parent()->get_name() == "data" && option.get_positional()) {
    return DatasetRegistry::Names();
  }
  Names values = ChoicesOf(option);
  const std::string type = option.get_type_name();
  const bool is_number =
      type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
  const bool is_list = values.empty() ? is_number : type.find("PATH") == std::string::npos;
  if (!is_list) values.emplace_back(kFiles);
  return values;
}

Names Options(const CLI::App& command) {
  Names names;
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Completes NAME of `dtrain list WHAT NAME`.
Names NamesToList(const Names& words) {
  for (const std::string& word : words) {
    try {
      if (Names names = NamesListed(word); !names.empty()) return names;
    } catch (const Error&) {  // no models are installed
    }
  }
  return {};
}

Names Candidates(const CLI::App& app, Names words) {
  const std::string word = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const CommandPlace place = FollowWords(app, words);
  const CLI::App& command = *place.command;
  if (place.option != nullptr) return ValuesOf(command, *place.option, word);
  if (word.starts_with('-') && !place.only_positionals) return Options(command);
  Names names;
  for (const CLI::App* known : VisibleCommands(command)) names.push_back(known->get_name());
  const auto positionals = PositionalsOf(command);
  if (positionals.empty()) return names;
  if (command.get_name() == "list" && place.positionals == 1) return NamesToList(words);
  return ValuesOf(command, *positionals[std::min(place.positionals, positionals.size() - 1)], word);
}

}  // namespace

static void AddCompleteCommand(CLI::App& app, Invocation& invocation) {
  auto words = std::make_shared<Names>();
  CLI::App* command =
      AddCommand(app, invocation, "complete", "complete a command line", [&app, words] {
        const std::string word = words->empty() ? "" : words->back();
        for (const std::string& candidate : Candidates(app, *words)) {
          if (candidate == kFiles || candidate.starts_with(word)) std::cout << candidate << '\n';
        }
        return 0;
      });
  command->group("");
  command->add_option("words", *words, "the words after `dtrain`, the last one unfinished");
}

DTRAIN_COMMAND("complete", 200, AddCompleteCommand);

}  // namespace dtrain
