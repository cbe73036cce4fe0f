// Files that must not be half there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

// The whole file; throws DataError with path and reason.
std::string ReadFile(const std::filesystem::path& path);

// Writes `path` so that a reader sees the old content or the new one, even after a crash: temporary
// file beside it, fsync, rename, fsync of the folder.  Throws RunFileError with path and reason
// (a full disk included), leaving the old file as it was and no temporary file behind.
void WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// The second half of that, for files that were written bit by bit (downloads, timelines): fsync
// `temporary`, rename it to `path`, fsync the folder.
void PublishDurably(const std::filesystem::path& temporary, const std::filesystem::path& path);

// mkdir -p; throws RunFileError with path and reason where it cannot be written.
void MakeFolder(const std::filesystem::path& path);

}  // namespace dtrain
