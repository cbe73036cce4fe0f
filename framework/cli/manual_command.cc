// `dtrain manual`: prints the man page dtrain(1), made from the texts of --help; hidden.  The build installs it.
#include <CLI/CLI.hpp>

#include <iostream>

#include <fmt/format.h>

#include "framework/cli/command.h"
#include "framework/cli/command_tree.h"
#include "framework/core/process.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

// Escapes a text for roff, so that dashes stay dashes and no line is taken for a request.
std::string Roff(const std::string& text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if (c == '\'' && roff.empty()) {
      roff += "\\(aq";
    } else {
      roff += c;
    }
  }
  return roff.starts_with('.') ? "\\&" + roff : roff;
}

// Returns the value that an option takes: "FILE", "cpu|cuda", "INT in [1 - 65536]".
std::string ValueOf(const CLI::Option& option) {
  const std::vector<std::string> choices = ChoicesOf(option);
  const std::string type = option.get_type_name();
  if (type.find('{') != std::string::npos) return Join(choices, "|");
  const size_t check = type.find(':');
  return check == std::string::npos ? type : type.substr(0, check);
}

std::string OptionText(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = ".TP\n\\fB" + Roff(Join(names)) + "\\fR";
  if (TakesValue(option)) text += " \\fI" + Roff(ValueOf(option)) + "\\fR";
  std::string help = option.get_description();
  if (!option.get_default_str().empty()) help += " (default: " + option.get_default_str() + ")";
  return text + "\n" + Roff(help) + "\n";
}

std::string CommandText(const CLI::App& command) {
  std::string head = "\\fB" + Roff(FullName(command)) + "\\fR";
  for (const CLI::Option* option : OptionsOf(command)) {
    if (option->get_required()) {
      head += fmt::format(" \\fB\\-\\-{}\\fR \\fI{}\\fR", Roff(option->get_lnames()[0]),
                          Roff(ValueOf(*option)));
    }
  }
  for (const CLI::Option* positional : PositionalsOf(command)) {
    const std::string name = "\\fI" + Roff(positional->get_name(true)) + "\\fR";
    head += positional->get_required() ? " " + name : " [" + name + "]";
  }
  std::string text = ".SS " + head + "\n" + Roff(command.get_description()) + ".\n";
  for (const CLI::Option* option : OptionsOf(command)) {
    if (option->get_single_name() != "help") text += OptionText(*option);
  }
  return text;
}

void AddCommandTexts(const CLI::App& app, std::string& text) {
  for (const CLI::App* command : VisibleCommands(app)) {
    if (VisibleCommands(*command).empty()) {
      text += CommandText(*command);
    } else {
      AddCommandTexts(*command, text);
    }
  }
}

constexpr char kEnd[] = R"(.SH EXIT STATUS
0 done, 1 internal error, 2 usage or config, 3 data, 4 a peer was lost, 5 diverged, 6 checkpoint or disk,
7 stalled, 75 stopped by a signal and ready to resume, 128+n killed by signal n.
.SH ENVIRONMENT
.TP
\fBDTRAIN_DATA\fR
the parent folder of the data sets
.TP
\fBXDG_CACHE_HOME\fR
data sets are in its subfolder dtrain (default: ~/.cache)
.TP
\fBNO_COLOR\fR
no colours on the terminal
.SH FILES
Models, runs and clusters with a name are in configs/ of the working directory and in
share/dtrain/configs of the installation.
.SH SEE ALSO
.BR mpirun (1),
.BR sbatch (1)
)";

std::string Manual(const CLI::App& app) {
  std::string text = fmt::format(".TH DTRAIN 1 \"\" \"dtrain {}\" \"User commands\"\n", Version());
  text +=
      ".SH NAME\ndtrain \\- distributed training with any published gradient\\-exchange protocol\n";
  text += ".SH SYNOPSIS\n.B dtrain\n.I command\n[\\fIoption\\fR ...]\n.SH DESCRIPTION\n";
  text += Roff(app.get_description()) + "\n.SH COMMANDS\n";
  AddCommandTexts(app, text);
  return text + kEnd;
}

}  // namespace

static void AddManualCommand(CLI::App& app, Invocation& invocation) {
  AddCommand(app, invocation, "manual", "print the man page", [&app] {
    std::cout << Manual(app);
    return 0;
  })->group("");
}

DTRAIN_COMMAND("manual", 210, AddManualCommand);

}  // namespace dtrain
