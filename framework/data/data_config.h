// DataConfig: the data set of a run (config section `data`).
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "framework/config/reader.h"
#include "framework/data/dataset.h"

namespace dtrain {

struct DataConfig {
  std::string name;
  std::string where;  // position of the name: "run.yaml:2:8"
  std::string root;   // "": the folders that LocateData searches
  std::shared_ptr<const DatasetSource> source;
  std::exception_ptr problem;  // an error of its files; thrown once all keys are checked
};

// Reads the section `data`, whose other keys the named data set reads.  Errors are added to the reader's document.
// `source` is null after one.  If `before` is not null, its source is taken and no file is read.
DataConfig ReadDataConfig(config::Reader reader, const DataConfig* before);

}  // namespace dtrain
