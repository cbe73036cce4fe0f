#include "tests/tidy/source_tree.h"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "framework/core/file.h"

namespace dtrain::tidy {

namespace fs = std::filesystem;

namespace {

const std::set<std::string> kFolders = {".ci",    "configs", "datasets", "framework",
                                        "layers", "launch",  "tests",    "tools"};
const std::set<std::string> kTextEndings = {".cc",   ".cu",     ".h",    ".cmake", ".txt",
                                            ".sh",   ".py",     ".yaml", ".md",    ".json",
                                            ".supp", ".sbatch", ".bash", ""};

bool IsText(const fs::path& path) { return kTextEndings.contains(path.extension().string()); }

void Load(const fs::path& file, const fs::path& root, SourceTree& tree) {
  if (IsText(file))
    tree.push_back({file.lexically_relative(root).generic_string(), ReadFile(file)});
}

}  // namespace

SourceTree LoadSourceTree(const fs::path& root) {
  SourceTree tree;
  for (const auto& top : fs::directory_iterator(root)) {
    if (top.path().filename() == ".git") continue;  // it is a file in a linked work tree
    if (top.is_regular_file()) Load(top.path(), root, tree);
    if (!top.is_directory() || !kFolders.contains(top.path().filename())) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file()) Load(entry.path(), root, tree);
    }
  }
  std::sort(tree.begin(), tree.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return tree;
}

bool IsHeader(const SourceFile& file) { return file.path.ends_with(".h"); }
bool IsSource(const SourceFile& file) {
  return file.path.ends_with(".cc") || file.path.ends_with(".cu");
}

bool Under(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string WithoutComments(const std::string& text) {
  std::string code;
  for (const std::string& line : LinesOf(text)) code += line.substr(0, line.find("//")) + "\n";
  return code;
}

std::vector<Include> IncludesOf(const SourceFile& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s+(["<])([^">]+)[">])re");
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : LinesOf(file.text)) {
    ++number;
    std::smatch match;
    if (line.find('#') == std::string::npos || !std::regex_search(line, match, pattern)) continue;
    includes.push_back({match[2], match[1] == "\"", number});
  }
  return includes;
}

}  // namespace dtrain::tidy
