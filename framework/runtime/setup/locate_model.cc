#include "framework/runtime/setup/locate_model.h"

#include <algorithm>

#include "framework/core/program.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kFoldersAboveProgram = 3;

bool IsPath(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".yaml");
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

}  // namespace

std::vector<fs::path> ModelFolders(const std::string& config_file) {
  std::vector<fs::path> folders;
  if (!config_file.empty()) {
    AddFolder(fs::path(config_file).parent_path() / ".." / "models", folders);
  }
  AddFolder(fs::path("configs") / "models", folders);
  fs::path above = ProgramFolder();
  for (int i = 0; i < kFoldersAboveProgram; ++i) {
    above = above.parent_path();
    AddFolder(above / "configs" / "models", folders);
  }
  return folders;
}

std::map<std::string, fs::path> NamedModels(const std::string& config_file) {
  std::map<std::string, fs::path> models;
  for (const fs::path& folder : ModelFolders(config_file)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") models.emplace(entry.path().stem(), entry.path());
    }
  }
  return models;
}

fs::path LocateModel(const std::string& model, const std::string& config_file) {
  if (!IsPath(model)) {
    const auto models = NamedModels(config_file);
    const auto found = models.find(model);
    return found == models.end() ? fs::path() : found->second;
  }
  for (const fs::path& path : {fs::path(model), fs::path(config_file).parent_path() / model}) {
    if (fs::is_regular_file(path)) return path;
  }
  return {};
}

}  // namespace dtrain
