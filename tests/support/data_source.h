// SourceOf makes the source of a data set as a run config does; RealDataRoot finds the real sets.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "framework/data/dataset.h"

namespace dtrain {

// Returns the source that the `keys` of section data configure.  Throws the errors that a run would.
inline std::shared_ptr<DatasetSource> SourceOf(const std::string& name, const std::string& keys) {
  config::Document document = config::Document::FromText("data: {" + keys + "}", "test.yaml");
  config::Reader reader = document.root().Section("data");
  std::shared_ptr<DatasetSource> source = DatasetRegistry::Get("data set", name).make();
  source->Configure(reader);
  document.Finish();
  return source;
}

// Returns $DTRAIN_DATA if it has the folder of this data set, else an empty path: the test skips with NoRealData.
inline std::filesystem::path RealDataRoot(const std::string& name) {
  const char* const root = std::getenv("DTRAIN_DATA");
  if (root == nullptr || !std::filesystem::is_directory(std::filesystem::path(root) / name)) {
    return {};
  }
  return root;
}

// Returns the reason of the skip, which tests/skips.txt knows.
inline std::string NoRealData(const std::string& name) {
  return "DTRAIN_DATA does not name a folder with " + name + "/ in it";
}

}  // namespace dtrain
