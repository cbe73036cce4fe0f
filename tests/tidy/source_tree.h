// The repository's own text files, for the tidy checks.  Tests add made-up files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::tidy {

struct SourceFile {
  std::string path;  // from the repository root, with '/'
  std::string text;
};

using SourceTree = std::vector<SourceFile>;

// Returns every text file in the project's top-level folders (not build/, runs/, .git/).
SourceTree LoadSourceTree(const std::filesystem::path& root);

bool IsHeader(const SourceFile& file);
bool IsSource(const SourceFile& file);  // .cc, .cu
bool Under(std::string_view path, std::string_view folder);
std::string FolderOf(const std::string& path);

std::vector<std::string> LinesOf(const std::string& text);
// Returns C++ text without its // comments.  String literals are not recognised: a "//" in one ends
// the line.
std::string WithoutComments(const std::string& text);

struct Include {
  std::string target;
  bool quoted = false;  // true for "x", false for <x>
  int line = 0;
};
std::vector<Include> IncludesOf(const SourceFile& file);

}  // namespace dtrain::tidy
