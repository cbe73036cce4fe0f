// Reads the documents for users: commands, sections, names in backquotes.
#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/system/system_fixture.h"

namespace dtrain {

inline const std::vector<std::string> kDocuments = {
    "README.md",
    "configs/README.md",
    "configs/strategies.md",
    "configs/studies/README.md",
    "launch/README.md",
    "framework/sim/README.md",
    "framework/cli/README.md",
    "framework/results/README.md",
    "tools/bench/README.md",
    "tools/reproduce/README.md",
};

inline std::vector<std::string> LinesOfDocument(const std::string& path) {
  std::istringstream text(Slurp(fs::path(DTRAIN_SOURCE_DIR) / path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

// Returns the lines that are indented by four outside of ``` fences: each is a command, or continues one up to the END
// that it names.  Comments after a command are left out.
inline std::vector<std::string> CommandsOfDocument(const std::string& path) {
  static const std::regex comment(R"(\s+#.*$)");
  std::vector<std::string> commands;
  bool fenced = false, open = false;
  for (const std::string& line : LinesOfDocument(path)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with("    ")) continue;
    const std::string text = line.substr(4);
    if (open) {
      commands.back() += "\n" + text;
      open = text != "END";
    } else {
      open = text.find("<<'END'") != std::string::npos;
      commands.push_back(open ? text : std::regex_replace(text, comment, ""));
    }
  }
  EXPECT_FALSE(open) << path;
  return commands;
}

// Returns the text after "## `title`", up to the next "## ".
inline std::vector<std::string> SectionOfDocument(const std::string& path,
                                                  const std::string& title) {
  std::vector<std::string> section;
  bool inside = false;
  for (const std::string& line : LinesOfDocument(path)) {
    if (line.starts_with("## ")) inside = line == "## " + title;
    if (inside) section.push_back(line);
  }
  EXPECT_FALSE(section.empty()) << title;
  return section;
}

inline std::set<std::string> Backquoted(const std::string& text) {
  static const std::regex quoted("`([^`]+)`");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

}  // namespace dtrain
