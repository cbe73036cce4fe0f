#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

// Returns GitHub's anchor of a heading: "## The `x` of y" gives the-x-of-y.
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const unsigned char c : heading.substr(heading.find(' ') + 1)) {
    if (std::isalnum(c) || c == '-' || c == '_' || c >= 128)
      anchor += static_cast<char>(std::tolower(c));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> AnchorsOf(const SourceFile& file) {
  std::set<std::string> anchors;
  bool fenced = false;
  for (const std::string& line : LinesOf(file.text)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (!fenced && line.starts_with('#')) anchors.insert(AnchorOf(line));
  }
  return anchors;
}

// Resolves "../c" in folder "a/b" to "a/c".  Returns "" if the target is outside the tree.
std::string Resolved(const std::string& folder, const std::string& target) {
  std::vector<std::string> parts;
  const std::string path = folder.empty() ? target : folder + "/" + target;
  for (size_t at = 0, end; at <= path.size(); at = end + 1) {
    end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else {
      if (parts.empty()) return "";
      parts.pop_back();
    }
  }
  std::string resolved;
  for (const std::string& part : parts) resolved += (resolved.empty() ? "" : "/") + part;
  return resolved;
}

}  // namespace

Findings CheckLinks(const SourceTree& tree) {
  std::map<std::string, std::set<std::string>> anchors;
  for (const SourceFile& file : tree) {
    if (file.path.ends_with(".md")) anchors[file.path] = AnchorsOf(file);
  }
  const auto exists = [&](const std::string& path) {
    return std::any_of(tree.begin(), tree.end(), [&](const SourceFile& file) {
      return file.path == path || Under(file.path, path);
    });
  };
  static const std::regex link(R"(\]\(([^)#\s]*)(?:#([^)\s]*))?\))");
  Findings findings;
  for (const auto& [path, own] : anchors) {
    const auto file = std::find_if(tree.begin(), tree.end(),
                                   [&path = path](const SourceFile& f) { return f.path == path; });
    int number = 0;
    for (const std::string& line : LinesOf(file->text)) {
      ++number;
      if (line.starts_with("    ")) continue;
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        const std::string name = (*it)[1], anchor = (*it)[2];
        if (name.find("://") != std::string::npos) continue;
        const std::string target = name.empty() ? path : Resolved(FolderOf(path), name);
        const bool found =
            exists(target) &&
            (anchor.empty() || (anchors.contains(target) && anchors.at(target).contains(anchor)));
        if (found) continue;
        findings.push_back(path + ":" + std::to_string(number) + ": no " + name +
                           (anchor.empty() ? "" : "#" + anchor));
      }
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
