// Caffe's HDF5Data: files with a data set `data` [N, ...] and one of labels [N] or [N, K], one file after the other.
//
// HDF5 1.10 may crash on a damaged file, so a child process reads it (hdf5/child_call.h) and hands over the numbers.
// What it cannot read, files without these names and those that do not fit together are a DataError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/table.h"

namespace dtrain {

struct Hdf5Names {
  std::string data = "data";
  std::string label = "label";
};

// `paths` as the config has them: a .txt file is a list of files, one a line, that begin where it lies or where dtrain
// is started.
std::vector<std::filesystem::path> Hdf5FilesOf(const std::vector<std::string>& paths);

// What is read of the samples of all files.
struct Hdf5Part {
  int64_t keep = kKeepAll;  // values of so many are kept, the first ones
  // Of all samples, where not all are kept; without, no more are read.
  bool measure = false;
};

Table OpenHdf5(const std::vector<std::filesystem::path>& files, const Hdf5Names& names,
               const Hdf5Part& part = {});

}  // namespace dtrain
