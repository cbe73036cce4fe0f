#include "framework/setup/locate_model.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int kFoldersAboveProgram = 3;

bool IsPath(const std::string& given) {
  return given.find('/') != std::string::npos || given.ends_with(".yaml") ||
         given.ends_with(".json");
}

// Returns the folders of this program's own files: the source trees that may contain it, and its installation.
std::vector<fs::path> OwnFolders() {
  std::vector<fs::path> folders;
  fs::path above = ProgramFolder();
  for (int i = 0; i < kFoldersAboveProgram; ++i) {
    above = above.parent_path();
    folders.push_back(above);
  }
  folders.push_back(SharedFolder());
  return folders;
}

// Returns the places to search for files of `kind`, in this order; they need not exist.
std::vector<fs::path> PlacesOf(const std::string& kind, const std::string& config_file) {
  std::vector<fs::path> places;
  if (!config_file.empty()) places.push_back(fs::path(config_file).parent_path() / ".." / kind);
  places.push_back(fs::path("configs") / kind);
  for (const fs::path& folder : OwnFolders()) places.push_back(folder / "configs" / kind);
  return places;
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

std::vector<fs::path> FoldersOf(const std::string& kind, const std::string& config_file) {
  std::vector<fs::path> folders;
  for (const fs::path& place : PlacesOf(kind, config_file)) AddFolder(place, folders);
  return folders;
}

// Returns the extension of files of `kind`.  People write all of them but costs, which are measured.
std::string ExtensionOf(const std::string& kind) { return kind == "costs" ? ".json" : ".yaml"; }

// Returns all files of `kind` by name.  If several folders have a name, the first one counts.
std::map<std::string, fs::path> NamedFiles(const std::string& kind,
                                           const std::string& config_file) {
  std::map<std::string, fs::path> files;
  for (const fs::path& folder : FoldersOf(kind, config_file)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ExtensionOf(kind)) continue;
      files.emplace(entry.path().stem(), entry.path());
    }
  }
  return files;
}

fs::path Named(const std::string& name, const std::map<std::string, fs::path>& files) {
  const auto found = files.find(name);
  return found == files.end() ? fs::path() : found->second;
}

// Returns "looked for in a, b": the existing folders, or all places if none exists.
std::string LookedIn(const std::string& kind, const std::string& config_file) {
  std::vector<fs::path> folders = FoldersOf(kind, config_file);
  const bool none = folders.empty();
  if (none) folders = PlacesOf(kind, config_file);
  std::vector<std::string> names;
  for (const fs::path& folder : folders) names.push_back(folder.lexically_normal().string());
  return fmt::format("looked for in {}{}", Join(names), none ? ", none of which exists" : "");
}

// Returns a hint for a name that no file of `kind` has; for "" without a suggestion.
std::string Hint(const std::string& kind, const std::string& name, const std::string& config_file) {
  std::vector<std::string> names;
  for (const auto& [known, file] : NamedFiles(kind, config_file)) names.push_back(known);
  const std::string allowed = names.empty() ? std::string("give the path of a ") +
                                                  (kind == "costs" ? "JSON" : "YAML") + " file"
                                            : SuggestName(name, names);
  return allowed + "; " + LookedIn(kind, config_file);
}

// Returns a suggestion for a config that does not exist: a file in the folder that it names, or a config with a name.
std::string NearestConfig(const fs::path& given) {
  std::map<std::string, std::string> known;
  for (const auto& [name, file] : NamedConfigs()) known[name] = name;
  const fs::path folder = given.parent_path();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const fs::path file = entry.path().filename();
    if (file.extension() == ".yaml" || file.extension() == ".yml")
      known[file.stem()] = (folder / file).string();
  }
  std::vector<std::string> names;
  for (const auto& [name, file] : known) names.push_back(name);
  const std::string nearest = NearestName(given.stem().string(), names);
  return nearest.empty() ? "" : DidYouMean(known[nearest]);
}

fs::path AtPath(const std::string& given, const std::string& config_file) {
  for (const fs::path& path : {fs::path(given), fs::path(config_file).parent_path() / given}) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_regular_file(status) || fs::is_fifo(status)) return path;
  }
  return {};
}

}  // namespace

std::vector<fs::path> ModelFolders(const std::string& config_file) {
  return FoldersOf("models", config_file);
}

std::map<std::string, fs::path> NamedModels(const std::string& config_file) {
  return NamedFiles("models", config_file);
}

fs::path LocateModel(const std::string& model, const std::string& config_file) {
  return IsPath(model) ? AtPath(model, config_file) : Named(model, NamedModels(config_file));
}

ModelConfig ReadModelConfig(config::Reader reader, const std::string& config_file,
                            const std::string& yaml) {
  ModelConfig model;
  model.yaml = yaml;
  model.name = static_cast<std::string>(
      reader.String("name", "")
          .Required()
          .Help("name of a model in configs/models, or the path of a model file"));
  if (model.name.empty()) return model;
  if (!yaml.empty()) {
    model.file = model.name;
    return model;
  }
  model.file = LocateModel(model.name, config_file).string();
  if (!model.file.empty()) {
    log::Debug("model {} is {}", model.name, model.file);
    model.yaml = config::ReadConfigText(model.file);
    return model;
  }
  reader.AddError("name", "model.name: there is no model '" + model.name + "'",
                  ModelHint(model.name, config_file));
  return model;
}

std::map<std::string, fs::path> NamedClusters(const std::string& config_file) {
  return NamedFiles("clusters", config_file);
}

fs::path LocateCluster(const std::string& cluster, const std::string& config_file) {
  const auto clusters = NamedClusters(config_file);
  const fs::path path = IsPath(cluster) ? AtPath(cluster, config_file) : Named(cluster, clusters);
  if (!path.empty()) return path;
  if (IsPath(cluster)) throw ConfigError("there is no cluster file '" + cluster + "'");
  throw ConfigError("there is no cluster '" + cluster + "'",
                    Hint("clusters", cluster, config_file));
}

fs::path LocateCosts(const std::string& costs, const std::string& config_file) {
  return IsPath(costs) ? AtPath(costs, config_file)
                       : Named(costs, NamedFiles("costs", config_file));
}

std::string CostsHint(const std::string& costs, const std::string& config_file) {
  if (IsPath(costs)) return "dtrain bench topk --costs FILE measures them";
  return Hint("costs", costs, config_file);
}

std::string ModelHint(const std::string& model, const std::string& config_file) {
  return Hint("models", model, config_file);
}

std::map<std::string, fs::path> NamedConfigs() { return NamedFiles("runs", ""); }

fs::path LocateConfig(const std::string& config) {
  // If a path exists and cannot be examined (a loop of links, a name that is too long), its reader reports the error.
  std::error_code problem, ignored;
  if (fs::exists(config, problem) || problem) return config;
  if (!IsPath(config)) {
    const fs::path named = Named(config, NamedConfigs());
    if (!named.empty()) return named;
    throw ConfigError("there is no config '" + config + "'",
                      NearestConfig(config) + Hint("runs", "", ""));
  }
  std::vector<std::string> places = {"the working directory"};
  for (const fs::path& folder : OwnFolders()) {
    if (fs::is_regular_file(folder / config, ignored)) return folder / config;
    places.push_back(folder.string());
  }
  throw ConfigError(fmt::format("there is no config '{}'", config),
                    NearestConfig(config) + "give the path of a YAML file" +
                        (fs::path(config).is_absolute() ? "" : "; looked for in " + Join(places)));
}

}  // namespace dtrain
