// Finds model, cluster and run files by name, and reads the config section `model`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/config/reader.h"

namespace dtrain {

// Returns the existing folders of models, each once, in the order in which they are searched: ../models beside the
// config's folder, configs/models of the working directory, configs/models of the source tree that contains the program
// (up to three folders above it), and share/dtrain/configs/models of its installation.  `config_file` may be "".
std::vector<std::filesystem::path> ModelFolders(const std::string& config_file);

// Returns every model that can be named, with its file.  If several folders have a name, the first one counts.
std::map<std::string, std::filesystem::path> NamedModels(const std::string& config_file);

// Returns the file of `model`, a name or a path (with a '/' or ending in .yaml).  A relative path is searched from the
// working directory, then from the config's folder.  Returns an empty path if there is none.
std::filesystem::path LocateModel(const std::string& model, const std::string& config_file);

// Returns a hint for a model that does not exist: the known models, and the folders that were searched.
std::string ModelHint(const std::string& model, const std::string& config_file);

struct ModelConfig {
  std::string name;  // name or path, as given in the config
  std::string file;  // the file found
  std::string yaml;  // the file's text
};

// Reads the section `model`.  If `yaml` is the text of a model, it is taken and no file is read.
ModelConfig ReadModelConfig(config::Reader reader, const std::string& config_file,
                            const std::string& yaml);

// Returns every cluster that can be named, with its file; the folders `clusters` are beside those of models.
std::map<std::string, std::filesystem::path> NamedClusters(const std::string& config_file);
// Returns the file of `cluster`, a name or a path.  Throws ConfigError, naming the known clusters, if there is none.
std::filesystem::path LocateCluster(const std::string& cluster, const std::string& config_file);

// Returns the file of measured compressor costs that `costs` names: a path as that of a model, or the name of a JSON file
// in the folders `costs` beside those of models.  Returns an empty path if there is none.
std::filesystem::path LocateCosts(const std::string& costs, const std::string& config_file);
// Returns a hint for one that does not exist: the known names, and the folders that were searched.
std::string CostsHint(const std::string& costs, const std::string& config_file);

// Returns the configs in the folders `runs` beside those of models.
std::map<std::string, std::filesystem::path> NamedConfigs();
// Returns the file of `config`: a path from the working directory, else one from the folders above the program or from
// that of its installation ("configs/runs/quickstart.yaml"), else a name ("quickstart").  Throws ConfigError, naming
// the places searched, if there is none.
std::filesystem::path LocateConfig(const std::string& config);

}  // namespace dtrain
