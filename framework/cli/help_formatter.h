// Declares how --help is laid out: options in a first column, their texts beside them, as wide as the terminal.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace dtrain {

// Returns the formatter of --help for all commands.
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

// Returns the width of --help: COLUMNS, else that of the terminal on stdout, else 100; at least 60.
size_t HelpWidth();

// Breaks the lines of a help text that are longer than `width` at spaces; a word that is longer stays whole.  What is
// broken off goes into the column of the texts, or to the left edge if the line began there.
std::string WrapHelp(const std::string& help, size_t width);

}  // namespace dtrain
