// What `dtrain data list|fetch|verify` does, on the registered data sets, without loading any.
// `root` is the folder above the sets' folders, or empty for the usual places (LocateData).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/files/fetch.h"

namespace dtrain {

struct DatasetStatus {
  std::string name;
  std::string help;
  bool own = false;  // the user's: nothing else is known
  int64_t classes = 0;
  int64_t train_samples = 0;
  int64_t test_samples = 0;
  int files = 0;                 // that its publisher ships; 0: made on the spot
  int files_here = 0;            // of these, by name
  std::filesystem::path folder;  // where it is; empty when not here
};

// Every registered data set, in name order.
std::vector<DatasetStatus> ListDatasets(const std::string& root);

// A table for people: name, classes, samples, where it is or how to get it.
std::string DatasetTable(const std::vector<DatasetStatus>& sets);

struct FileStatus {
  std::string name;     // as it lies there: without .gz where somebody has unpacked it
  std::string problem;  // "" when size and SHA-256 are the publisher's
};

struct VerifyReport {
  std::string name;
  std::filesystem::path folder;  // empty for a set without files
  std::vector<FileStatus> files;
  bool ok() const;
};

// Compares the set's files with the sizes and hashes of its publisher; one that is unpacked, or was
// packed by somebody else, by its content.  Throws UsageError for an unknown set, DataError when it
// is not here.
VerifyReport VerifyDataset(const std::string& name, const std::string& root);

// The set's files in `folder` that are not as published, for a warning when it is loaded.  Each is hashed once
// on this machine: what was found is remembered in the file `memory` for as long as path, size and time of
// change are the same.  A memory that cannot be read or written, or that others may write to, costs the time of hashing,
// nothing else.
std::vector<FileStatus> DifferentFiles(const std::string& name, const std::filesystem::path& folder,
                                       const std::filesystem::path& memory);
// $XDG_CACHE_HOME/dtrain/verified.json or ~/.cache/dtrain/verified.json; empty where neither is known.
std::filesystem::path UsualMemory();

// One line a file and one for the whole.
std::string VerifyText(const VerifyReport& report);

// Downloads what is missing, from `options.from` where that is given, into FetchFolder and returns
// the folder that has the whole set: another one where it was complete already, an empty path for a
// set without files.  Throws as FetchFiles does.
std::filesystem::path FetchDataset(const std::string& name, const std::string& root,
                                   const FetchOptions& options = {});

}  // namespace dtrain
