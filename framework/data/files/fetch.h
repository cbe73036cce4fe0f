// FetchFiles downloads the files of data sets.
//
// A file is loaded into NAME.part, resumed from there after an interruption, checked for size and
// SHA-256, and only then renamed to NAME: what has the name is whole.  One process fetches into a
// folder at a time (flock on .lock, which is removed at the end); others wait, say so, and then find the files there.
// Nothing is locked or written if all files are there and right, so a folder that can only be read will do.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/dataset.h"

namespace dtrain {

struct FetchOptions {
  int stall_seconds = 30;  // give up on a server that sends nothing (< 512 bytes/s) for so long
  int connect_seconds = 20;
  int retry_seconds = 1;  // pause before a broken transfer is taken up again
  std::string from;       // another server than the publishers': FROM/SET/FILE; "": theirs
  std::function<void(const std::string&)> say;  // one line about what happens; default: the log
};

// Brings all `files` into `folder` (made if need be).  Files that are there and right stay; wrong
// ones are replaced.  The URLs of a file are tried in order.  A transfer that breaks off is taken
// up where it ended as long as each try brings something.  Throws DataError with every URL and what
// was wrong with it; what came so far stays in .part.  Content of the wrong size or hash is
// removed.
void FetchFiles(const std::vector<RemoteFile>& files, const std::filesystem::path& folder,
                const FetchOptions& options = {});

// Says what is wrong with the file at `path`: "" (nothing), "missing", "9 bytes, expected 10",
// "SHA-256 is ..., expected ...".  Sizes and hashes that are not known (0, empty) are not checked.
std::string CheckFile(const RemoteFile& file, const std::filesystem::path& path);

}  // namespace dtrain
