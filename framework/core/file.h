// These functions read and write files whole: no reader sees half a file.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

// Returns the whole of a regular file; throws DataError with path and reason.  Anything else is refused at once: a
// pipe would be waited for, a device may have no end.
std::string ReadFile(const std::filesystem::path& path);

// Reads a text that people write, from a regular file or from a pipe (`--config <(...)`, /dev/stdin).  Throws
// DataError as ReadFile does, and for more than a megabyte or a pipe that has not ended after 10 s.
std::string ReadText(const std::filesystem::path& path);

// Says what a user's path is instead of a regular file, links followed: "PATH is a pipe, not a regular file".  Returns
// `absent` where nothing has that path.
std::string WhyNoFile(const std::filesystem::path& path, const std::string& absent);

// A file on its way: it lies beside its place until it is whole, and all is written through one descriptor, so that
// nobody can put another file in between.  Throws RunFileError with path and reason.
class NewFile {
 public:
  // The file lies at `temporary` until it is published, by default at PATH.tmp; a file of that name is replaced.
  explicit NewFile(std::filesystem::path path, std::filesystem::path temporary = {});
  ~NewFile();  // removes what was not published
  NewFile(const NewFile&) = delete;

  void Write(std::string_view content);
  void Publish();  // fsync, rename, fsync of the folder

 private:
  const std::filesystem::path path_, temporary_;
  int fd_;
};

// Writes `path` so that a reader sees the old content or the new one, even after a crash: temporary
// file beside it, fsync, rename, fsync of the folder.  Throws RunFileError with path and reason
// (a full disk included), leaving the old file as it was and no temporary file behind.  A link is
// replaced itself, not followed, for these files are a run's own.
void WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// Does the same for a path that the user named (--output FILE): the file behind a link is written, and what is no
// regular file stays what it is: a pipe or a device (/dev/stdout) is written into, a folder refused.  A file that is
// replaced keeps its mode, and nothing else in its folder is touched.
void WriteOutput(const std::filesystem::path& path, std::string_view content);

// Opens a new file for writing in the place of whatever has this name; a link is removed, not followed.
// Throws RunFileError.  The caller closes it.
int CreateFile(const std::filesystem::path& path);

// Opens a file to write at its end, and makes it where there is none.  A link is not followed, and what is no regular
// file is refused: a pipe would be waited for.  Throws RunFileError.  The caller closes it.
int OpenToAppend(const std::filesystem::path& path);

// Publishes a file that was written bit by bit (a download): fsync of `temporary`, rename to `path`, fsync of the
// folder.
void PublishDurably(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Makes the hint about a file or folder that is not there: where a relative path begins; "" for an absolute one.
std::string WhereItBegins(const std::filesystem::path& path);

// Makes a folder and those above it; throws RunFileError with path and reason where it cannot be written.
void MakeFolder(const std::filesystem::path& path);
// Does the same for a folder whose files are believed later: no other user may write into it, nor into those above it
// that are made too (mode 0755), whatever the umask.
void MakePrivateFolder(const std::filesystem::path& path, mode_t mode = 0700);

// Says why what lies in a file or folder is not to be believed: "may be written by others (mode 0777)".  Returns ""
// where it belongs to `user` or root and no other user may write to it.  The owner of a folder, and who may write into
// it, can put any file in the place of another.
std::string WhyNotTrusted(const struct stat& status, uid_t user = ::geteuid());
// Says the same of the file or folder that has this path, links followed; "" where nothing has it.
std::string WhyNotTrusted(const std::filesystem::path& path);

}  // namespace dtrain
