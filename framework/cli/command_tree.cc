#include "framework/cli/command_tree.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace dtrain {
namespace {

std::vector<std::string> SplitWords(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

bool IsNumber(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.';
}

class Walk {
 public:
  explicit Walk(const CLI::App& app) { place_.command = &app; }

  void Take(const std::string& word) {
    if (place_.only_positionals) {
      TakePositional(word);
    } else if (place_.option != nullptr && !(more_ && IsOption(word))) {
      if (!more_) place_.option = nullptr;
    } else if (word == "--") {
      place_.only_positionals = true;
      place_.option = nullptr;
    } else if (IsOption(word) && !IsNumber(word)) {
      TakeOption(word);
    } else {
      TakeWord(word);
    }
  }

  const CommandPlace& place() const { return place_; }

 private:
  void TakeOption(const std::string& word) {
    place_.option = nullptr;
    const size_t equals = word.find('=');
    const CLI::Option* const option = Find(word.substr(0, equals));
    if (option == nullptr) {
      NoteUnknown(word.substr(0, equals));
    } else if (TakesValue(*option) && equals == std::string::npos && !BringsValue(word)) {
      place_.option = option;
      more_ = option->get_items_expected_max() > 1 && option->get_allow_extra_args();
    }
  }
  // True for a short option with its value in the same word, "-p4".
  static bool BringsValue(const std::string& word) { return word[1] != '-' && word.size() > 2; }

  const CLI::Option* Find(const std::string& name) const {
    if (const auto* option = place_.command->get_option_no_throw(name)) return option;
    if (name[1] == '-' || name.size() == 2) return nullptr;
    return place_.command->get_option_no_throw(name.substr(0, 2));  // "-vq", "-p4"
  }

  void TakeWord(const std::string& word) {
    const auto named = place_.command->get_subcommands(
        [&](const CLI::App* command) { return command->get_name() == word; });
    if (!named.empty()) {
      place_.command = named[0];
      place_.positionals = 0;
    } else if (!VisibleCommands(*place_.command).empty()) {
      NoteUnknown(word);
    } else {
      TakePositional(word);
    }
  }

  void TakePositional(const std::string& word) {
    if (place_.stray.empty() && PositionalsOf(*place_.command).empty()) place_.stray = word;
    ++place_.positionals;
  }

  void NoteUnknown(const std::string& word) {
    if (place_.unknown_at != nullptr) return;
    place_.unknown = word;
    place_.unknown_at = place_.command;
  }

  CommandPlace place_;
  bool more_ = false;  // the option takes several words
};

}  // namespace

std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty();
  });
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string FullName(const CLI::App& command) {
  const CLI::App* const above = command.get_parent();
  return above == nullptr ? command.get_name() : FullName(*above) + " " + command.get_name();
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open != std::string::npos) {
    return SplitWords(type.substr(open + 1, type.find('}', open) - open - 1), ',');
  }
  std::vector<std::string> choices;
  if (type.find('|') == std::string::npos) return choices;
  for (const std::string& part : SplitWords(type, '|')) {
    if (std::ranges::none_of(part, [](unsigned char c) { return std::isupper(c) != 0; })) {
      choices.push_back(part);
    }
  }
  return choices;
}

CommandPlace FollowWords(const CLI::App& app, const std::vector<std::string>& words) {
  Walk walk(app);
  for (const std::string& word : words) walk.Take(word);
  return walk.place();
}

}  // namespace dtrain
