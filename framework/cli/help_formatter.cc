#include "framework/cli/help_formatter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace dtrain {
namespace {

constexpr size_t kTextColumn = 34;  // where the texts of options begin
constexpr int kUsualWidth = 100;
constexpr int kLeastWidth = 60;  // leaves the texts 26 characters

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return WrapHelp(CLI::Formatter::make_help(app, std::move(name), mode), HelpWidth());
  }
};

// Returns the space to break a line at; npos if there is none.
size_t BreakOf(const std::string& line, size_t width) {
  const bool has_texts = line.size() > kTextColumn && line[kTextColumn - 1] == ' ';
  const size_t first = has_texts ? line.find_first_not_of(' ', kTextColumn)  // not within the name
                                 : line.find_first_not_of(' ');
  if (first == std::string::npos) return first;
  const size_t last = line.rfind(' ', width);
  return last != std::string::npos && last > first ? last : line.find(' ', std::max(first, width));
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kTextColumn);
  return formatter;
}

size_t HelpWidth() {
  const char* const said = std::getenv("COLUMNS");
  int width = said == nullptr ? 0 : std::atoi(said);
  winsize size{};
  if (width <= 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return static_cast<size_t>(width <= 0 ? kUsualWidth : std::max(width, kLeastWidth));
}

std::string WrapHelp(const std::string& help, size_t width) {
  std::string wrapped;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const size_t indent = line.starts_with(' ') ? kTextColumn : 0;
    for (size_t at; line.size() > width && (at = BreakOf(line, width)) != std::string::npos;) {
      const size_t next = line.find_first_not_of(' ', at);
      if (next == std::string::npos) break;
      wrapped += line.substr(0, line.find_last_not_of(' ', at) + 1) + '\n';
      line = std::string(indent, ' ') + line.substr(next);
    }
    wrapped += line + '\n';
  }
  return wrapped;
}

}  // namespace dtrain
