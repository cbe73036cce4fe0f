// Reads the files of Caffe's HDF5Data layer in order: each has a data set `data` [N, ...] and one of labels [N] or [N,
// K].
//
// HDF5 1.10 may crash on a damaged file, so a child process reads it (hdf5/child_call.h) and passes the numbers on.
// Unreadable files, files without these data sets and files that do not fit together are a DataError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/layout.h"
#include "framework/data/tables/table.h"

namespace dtrain {

struct Hdf5Names {
  std::string data = "data";
  std::string label = "label";
};

// Expands the config's `paths`: a .txt file lists one file per line, relative to its own folder or to the working
// directory.
std::vector<std::filesystem::path> Hdf5FilesOf(const std::vector<std::string>& paths);

// The part to read of the samples of all files.
struct Hdf5Part {
  int64_t keep = kKeepAll;  // only the first `keep` samples are kept
  // Computes the moments of all samples even if not all are kept; if false, no more than these are read.
  bool measure = false;
  ImageLayout layout = ImageLayout::kAuto;
};

Table OpenHdf5(const std::vector<std::filesystem::path>& files, const Hdf5Names& names,
               Hdf5Part part = {});

}  // namespace dtrain
