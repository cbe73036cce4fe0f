// Where model, cluster and run files are found by name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace dtrain {

// Folders of models, in the order they are searched: ../models beside the config's folder,
// configs/models of the working directory, configs/models of the tree the program lies in (up to
// three folders above it), and share/dtrain/configs/models of its installation.  Those that exist,
// each once.  `config_file` may be "".
std::vector<std::filesystem::path> ModelFolders(const std::string& config_file);

// Every model that can be named, with its file.  The first folder that has a name wins.
std::map<std::string, std::filesystem::path> NamedModels(const std::string& config_file);

// The file of `model`, a name or a path (with a '/' or ending in .yaml; a relative one is looked up
// from the working directory, then from the config's folder).  Empty when there is none.
std::filesystem::path LocateModel(const std::string& model, const std::string& config_file);

// For who names a model that is not there: which there are, and where they were looked for.
std::string ModelHint(const std::string& model, const std::string& config_file);

// The same of clusters, which lie in folders `clusters` beside those of models.
std::map<std::string, std::filesystem::path> NamedClusters(const std::string& config_file);
// Throws ConfigError with the names that there are when there is none.
std::filesystem::path LocateCluster(const std::string& cluster, const std::string& config_file);

// The configs of folders `runs` beside those of models.
std::map<std::string, std::filesystem::path> NamedConfigs();
// The file of `config`: a path from the working directory, else one from the folders above the program or from that of
// its installation ("configs/runs/quickstart.yaml"), else a name ("quickstart").  Throws ConfigError, with where it
// was looked for, when there is none.
std::filesystem::path LocateConfig(const std::string& config);

}  // namespace dtrain
