// FetchFiles downloads the files of data sets, or copies them from a local folder.
//
// A file is loaded into NAME.part, resumed from there after an interruption, checked for size and
// SHA-256, and only then renamed to NAME: a file of that name is complete.  One process fetches into a folder at a time
// (flock on .lock, which is removed at the end); others report it, wait, and then find the files.  Nothing is locked or
// written if all files are present and correct, so a read-only folder will do.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/dataset.h"

namespace dtrain {

struct FetchOptions {
  // Gives up on a server that sends less than 512 bytes/s for this time.
  int stall_seconds = 30;
  int connect_seconds = 20;
  int retry_seconds = 1;  // pause before a broken transfer is resumed
  std::string from;       // other server or folder, with FROM/SET/FILE; "": the publishers'
  std::function<void(const std::string&)> say;  // gets one line per event; default: the log
};

// Downloads all `files` into `folder`, creating it if necessary.  Correct files stay; wrong ones are replaced.  The
// URLs of a file are tried in order.  A broken transfer is resumed as long as each try brings some bytes.  A URL that
// begins with '/' is a path: its file is copied, and no .part stays after an error.  Throws DataError with every URL
// and its problem; the bytes of a download received so far stay in .part.  Content of the wrong size or hash is
// removed.
void FetchFiles(const std::vector<RemoteFile>& files, const std::filesystem::path& folder,
                const FetchOptions& options = {});

// Returns the problem with the file at `path`: "" (none), "missing", "9 bytes, expected 10", "SHA-256 is ..., expected
// ...".  Unknown sizes (0) and hashes ("") are not checked.
std::string CheckFile(const RemoteFile& file, const std::filesystem::path& path);

}  // namespace dtrain
