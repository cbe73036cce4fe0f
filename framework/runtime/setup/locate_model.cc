#include "framework/runtime/setup/locate_model.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kFoldersAboveProgram = 3;

bool IsPath(const std::string& given) {
  return given.find('/') != std::string::npos || given.ends_with(".yaml");
}

void AddFolder(const fs::path& folder, std::vector<fs::path>& folders) {
  std::error_code error;
  const fs::path known_as = fs::canonical(folder, error);
  const auto is_same = [&](const fs::path& other) {
    std::error_code ignored;
    return fs::canonical(other, ignored) == known_as;
  };
  if (error || !fs::is_directory(known_as, error)) return;
  if (std::none_of(folders.begin(), folders.end(), is_same)) {
    folders.push_back(folder.lexically_normal());
  }
}

// Folders of `kind`, in the order they are searched.
std::vector<fs::path> FoldersOf(const std::string& kind, const std::string& config_file) {
  std::vector<fs::path> folders;
  if (!config_file.empty()) AddFolder(fs::path(config_file).parent_path() / ".." / kind, folders);
  AddFolder(fs::path("configs") / kind, folders);
  fs::path above = ProgramFolder();
  for (int i = 0; i < kFoldersAboveProgram; ++i) {
    above = above.parent_path();
    AddFolder(above / "configs" / kind, folders);
  }
  return folders;
}

// The first folder that has a name wins.
std::map<std::string, fs::path> NamedFiles(const std::vector<fs::path>& folders) {
  std::map<std::string, fs::path> files;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") files.emplace(entry.path().stem(), entry.path());
    }
  }
  return files;
}

fs::path Named(const std::string& name, const std::map<std::string, fs::path>& files) {
  const auto found = files.find(name);
  return found == files.end() ? fs::path() : found->second;
}

fs::path AtPath(const std::string& given, const std::string& config_file) {
  for (const fs::path& path : {fs::path(given), fs::path(config_file).parent_path() / given}) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return {};
}

}  // namespace

std::vector<fs::path> ModelFolders(const std::string& config_file) {
  return FoldersOf("models", config_file);
}

std::map<std::string, fs::path> NamedModels(const std::string& config_file) {
  return NamedFiles(ModelFolders(config_file));
}

fs::path LocateModel(const std::string& model, const std::string& config_file) {
  return IsPath(model) ? AtPath(model, config_file) : Named(model, NamedModels(config_file));
}

std::map<std::string, fs::path> NamedClusters(const std::string& config_file) {
  return NamedFiles(FoldersOf("clusters", config_file));
}

fs::path LocateCluster(const std::string& cluster, const std::string& config_file) {
  const auto clusters = NamedClusters(config_file);
  const fs::path path = IsPath(cluster) ? AtPath(cluster, config_file) : Named(cluster, clusters);
  if (!path.empty()) return path;
  if (IsPath(cluster)) throw ConfigError("there is no cluster file '" + cluster + "'");
  std::vector<std::string> names;
  for (const auto& [name, file] : clusters) names.push_back(name);
  throw ConfigError("there is no cluster '" + cluster + "'", names.empty()
                                                                 ? "give the path of a cluster file"
                                                                 : SuggestName(cluster, names));
}

}  // namespace dtrain
