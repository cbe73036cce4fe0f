// Files that must not be half there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

// The whole of a regular file; throws DataError with path and reason.  Anything else is refused at once: a
// pipe would be waited for, a device may have no end.
std::string ReadFile(const std::filesystem::path& path);

// A text that people write, from a regular file or from a pipe (`--config <(...)`, /dev/stdin).  Throws
// DataError as ReadFile does, and for more than a megabyte or a pipe that has not ended after 10 s.
std::string ReadText(const std::filesystem::path& path);

// Writes `path` so that a reader sees the old content or the new one, even after a crash: temporary
// file beside it, fsync, rename, fsync of the folder.  Throws RunFileError with path and reason
// (a full disk included), leaving the old file as it was and no temporary file behind.  Of a link, it is
// the link that is replaced, for these files are a run's own.
void WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// The same for a path that the user named (--output FILE): the file behind a link is written, and what is no
// regular file stays what it is: a pipe or a device (/dev/stdout) is written into, a folder refused.
void WriteOutput(const std::filesystem::path& path, std::string_view content);

// Opens a new file for writing in the place of whatever has this name; a link is removed, not followed.
// Throws RunFileError.  The caller closes it.
int CreateFile(const std::filesystem::path& path);

// The second half of that, for files that were written bit by bit (downloads, timelines): fsync
// `temporary`, rename it to `path`, fsync the folder.
void PublishDurably(const std::filesystem::path& temporary, const std::filesystem::path& path);

// For the hint about a file or folder that is not there: where a relative path begins; "" for an absolute one.
std::string WhereItBegins(const std::filesystem::path& path);

// mkdir -p; throws RunFileError with path and reason where it cannot be written.
void MakeFolder(const std::filesystem::path& path);

}  // namespace dtrain
