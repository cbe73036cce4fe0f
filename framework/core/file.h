// These functions read and write files whole: no reader sees half a file.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

// Returns the whole of a regular file; throws DataError with path and reason.  Anything else is refused at once: a
// pipe could block for ever, and a device may have no end.
std::string ReadFile(const std::filesystem::path& path);

// Reads a text that people write, from a regular file or from a pipe (`--config <(...)`, /dev/stdin).  Throws
// DataError as ReadFile does, and for more than a megabyte or a pipe that has not ended after 10 s.
std::string ReadText(const std::filesystem::path& path);

// Describes what a user's path is if it is no regular file, following links: "PATH is a pipe, not a regular file".
// Returns `absent` if nothing has that path.
std::string WhyNoFile(const std::filesystem::path& path, const std::string& absent);

// Writes a new file that appears under its name only when it is complete.  It is written under a temporary name through
// one descriptor, so that no other process can put another file in between.  Throws RunFileError with path and reason.
class NewFile {
 public:
  // The file is written at `temporary`, by default PATH.tmp, until Publish; an existing file of that name is replaced.
  explicit NewFile(std::filesystem::path path, std::filesystem::path temporary = {});
  ~NewFile();  // removes an unpublished file
  NewFile(const NewFile&) = delete;

  void Write(std::string_view content);
  void Publish();  // fsync, rename, fsync of the folder

 private:
  const std::filesystem::path path_, temporary_;
  int fd_;
};

// Writes `path` so that a reader sees the old content or the new one, even after a crash: temporary
// file in the same folder, fsync, rename, fsync of the folder.  Throws RunFileError with path and reason (a full disk
// included), leaving the old file as it was and no temporary file behind.  A symbolic link is replaced, not followed,
// since these files belong to the run.
void WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// Does the same for a path that the user named (--output FILE): links are followed, a pipe or a device (/dev/stdout) is
// written into, and a folder is refused.  A file that is replaced keeps its mode, and nothing else in its folder is
// touched.
void WriteOutput(const std::filesystem::path& path, std::string_view content);

// Creates a file for writing, replacing any file of this name; a link is removed, not followed.  Throws RunFileError.
// The caller closes it.
int CreateFile(const std::filesystem::path& path);

// Opens a file to write at its end, creating it if it is missing.  A link is not followed, and anything but a regular
// file is refused, since a pipe could block.  Throws RunFileError.  The caller closes it.
int OpenToAppend(const std::filesystem::path& path);

// Publishes a file that was written piecemeal (a download): fsync of `temporary`, rename to `path`, fsync of the
// folder.
void PublishDurably(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Returns the hint for a missing file or folder: which folder a relative path starts from; "" for an absolute path.
std::string WhereItBegins(const std::filesystem::path& path);

// Creates a folder and its missing parents; throws RunFileError with path and reason if it cannot be created or
// written.
void MakeFolder(const std::filesystem::path& path);
// Does the same for a folder whose files are trusted later: whatever the umask, no other user may write into it, nor
// into the parents created with it (mode 0755).
void MakePrivateFolder(const std::filesystem::path& path, mode_t mode = 0700);

// Says why a file or folder cannot be trusted: "may be written by others (mode 0777)".  Returns "" if it belongs to
// `user` or root and no other user may write to it.  The owner of a folder, and anyone who may write into it, can
// replace any of its files.
std::string WhyNotTrusted(const struct stat& status, uid_t user = ::geteuid());
// Does the same for a path, following links; returns "" if nothing has it.
std::string WhyNotTrusted(const std::filesystem::path& path);

}  // namespace dtrain
