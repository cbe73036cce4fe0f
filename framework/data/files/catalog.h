// Implements `dtrain data list|fetch|verify` for the registered data sets, without loading any.  `root` is the folder
// above the sets' folders, or empty for the usual places (LocateData).
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
  bool own = false;  // the user's own: nothing else is known
  int64_t classes = 0;
  int64_t train_samples = 0;
  int64_t test_samples = 0;
  int files = 0;                 // published files; 0: the set is generated
  int files_here = 0;            // of these, present by name
  std::filesystem::path folder;  // its folder; empty if absent
};

// Returns every registered data set, in name order.
std::vector<DatasetStatus> ListDatasets(const std::string& root);

// Returns a table for users: name, classes, samples, folder or how to get it.
std::string DatasetTable(const std::vector<DatasetStatus>& sets);

struct FileStatus {
  std::string name;     // actual name: without .gz if it was unpacked
  std::string problem;  // "" if size and SHA-256 are the publisher's
};

struct VerifyReport {
  std::string name;
  std::filesystem::path folder;  // empty for a set without files
  std::vector<FileStatus> files;
  bool ok() const;
};

// Compares the set's files with the publisher's sizes and hashes; a file that was unpacked or compressed again, by its
// content.  Throws UsageError for an unknown set, DataError if it is absent.
VerifyReport VerifyDataset(const std::string& name, const std::string& root);

// Returns the set's files in `folder` that differ from the published ones, for a warning when it is loaded.  Each is
// hashed once on this machine: the file `memory` keeps the result as long as path, size and time of change are the
// same.  If `memory` cannot be read or written, or others may write to it, files are hashed each time.
std::vector<FileStatus> DifferentFiles(const std::string& name, const std::filesystem::path& folder,
                                       const std::filesystem::path& memory);
// Returns $XDG_CACHE_HOME/dtrain/verified.json or ~/.cache/dtrain/verified.json; empty if neither is known.
std::filesystem::path UsualMemory();

// Returns one line per file and one for the whole set.
std::string VerifyText(const VerifyReport& report);

// Downloads missing files, from `options.from` if that is given, into FetchFolder and returns the folder that has the
// whole set: another folder if the set was complete there already, an empty path for a set without files.  `from` may
// be a local folder, as a path or a file:// URL, with FROM/NAME/FILE or FROM/FILE, packed or not; then also files
// without URLs are taken if they are there.  Throws as FetchFiles does, and DataError with the names of all files that
// a local folder lacks, before any is copied.
std::filesystem::path FetchDataset(const std::string& name, const std::string& root,
                                   const FetchOptions& options = {});

}  // namespace dtrain
