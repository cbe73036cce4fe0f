#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

// Returns the first two folders: tests/comm/mpi/x.cc gives tests/comm.
std::string TopTwo(const std::string& path) {
  return path.substr(0, path.find('/', path.find('/') + 1));
}

// Returns the constants at namespace scope by their line number.  Members and local constants are
// indented and do not match.
std::map<size_t, std::string> ConstantsOf(const SourceFile& file) {
  static const std::regex constant(
      R"((?:inline |static )*const(?:expr)? [\w:<>, *]+\b(k[A-Z]\w*)\b.*)");
  std::map<size_t, std::string> constants;
  const std::vector<std::string> lines = LinesOf(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_match(lines[i], match, constant)) constants[i + 1] = match[1];
  }
  return constants;
}

}  // namespace

std::set<std::string> CompiledSources(const std::string& json, const std::string& root) {
  std::set<std::string> compiled;
  const auto add = [&](const std::string& file) {
    if (Under(file, root)) compiled.insert(file.substr(root.size() + 1));
  };
  for (const auto& command : nlohmann::json::parse(json)) {
    const std::string file = command.at("file");
    add(file);
    if (file.find("/Unity/unity_") == std::string::npos) continue;
    std::ifstream several(file);
    const std::string include = "#include \"";
    for (std::string line; std::getline(several, line);) {
      if (line.starts_with(include))
        add(line.substr(include.size(), line.rfind('"') - include.size()));
    }
  }
  return compiled;
}

Findings CheckSourcesCompiled(const SourceTree& tree, const std::set<std::string>& compiled) {
  // A build without the CUDA toolkit leaves the whole CUDA module out.
  const auto of_cuda = [](const std::string& path) {
    return path.ends_with("_cuda.cc") || path.ends_with("_cuda.cu") || Under(path, "tests/cuda");
  };
  const bool with_cuda = std::any_of(compiled.begin(), compiled.end(), of_cuda);
  Findings findings;
  for (const SourceFile& file : tree) {
    if (of_cuda(file.path) && !with_cuda) continue;
    if (IsSource(file) && !compiled.contains(file.path)) {
      findings.push_back(file.path + ": no target compiles this file");
    }
  }
  return findings;
}

Findings CheckTestFoldersRegistered(const SourceTree& tree) {
  std::set<std::string> folders, registered;
  for (const SourceFile& file : tree) {
    if (IsSource(file) && Under(file.path, "tests")) folders.insert(TopTwo(file.path));
    if (file.path != "tests/CMakeLists.txt") continue;
    static const std::regex call(R"((^|\n)\s*dtrain_(mpi_)?test\((\w+))");
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), call), end; at != end; ++at) {
      registered.insert("tests/" + (*at)[3].str());
    }
    // A CMake module whose name has a folder is a library that tests load.
    static const std::regex module(R"(\n\s*add_library\(\w+ MODULE (\w+)/)");
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), module), end; at != end;
         ++at) {
      registered.insert("tests/" + (*at)[1].str());
    }
  }
  Findings findings;
  for (const std::string& folder : folders) {
    if (!registered.contains(folder)) {
      findings.push_back(folder +
                         ": no dtrain_test(...) in tests/CMakeLists.txt builds this folder");
    }
  }
  return findings;
}

namespace {

// Returns the folder whose files are compiled as one: those of layers/ and datasets/ are, over their folders.
std::string CompiledFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path), above = FolderOf(folder);
  return above == "layers" || above == "datasets" ? above : folder;
}

}  // namespace

Findings CheckConstantsOfHeaders(const SourceTree& tree) {
  std::map<std::string, std::string> headers;  // by folder/kName
  for (const SourceFile& file : tree) {
    if (!IsHeader(file)) continue;
    for (const auto& [line, name] : ConstantsOf(file)) {
      headers[CompiledFolderOf(file.path) + "/" + name] = file.path;
    }
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsSource(file)) continue;
    for (const auto& [line, name] : ConstantsOf(file)) {
      const auto header = headers.find(CompiledFolderOf(file.path) + "/" + name);
      if (header == headers.end()) continue;
      findings.push_back(file.path + ":" + std::to_string(line) + ": " + name +
                         " is a constant of " + header->second + ", too");
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
