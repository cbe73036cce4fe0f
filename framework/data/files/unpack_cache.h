// UnpackCache keeps an archive's unpacked content as one file, so that it is unpacked once on a machine, not by every
// rank at every start.
//
// A file is identified by its archive (path, size, time of change) and by the kind of content.  It ends with the
// SHA-256 of its content, and gets its name only when it is complete.  One process unpacks at a time (flock); the
// others report it, wait, and then find the content.  If the cache cannot be read or written, for lack of permission,
// space or locks, a warning is logged and the archive is unpacked each time; no partial file stays behind.
//
// A file is trusted only if it and its folder belong to the user or to root, and no other user may write to them: its
// checksum does not prove who wrote it.  So content that root has unpacked serves all users.  A folder created here is
// private to the user (mode 0700).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "framework/core/log.h"

namespace dtrain {

class UnpackCache {
 public:
  // `say` gets one line per event; default: the log.
  using Say = std::function<void(log::Level, const std::string&)>;
  explicit UnpackCache(std::filesystem::path folder, Say say = log::Write);

  // Returns $XDG_CACHE_HOME/dtrain/unpacked or ~/.cache/dtrain/unpacked; empty if neither is known.
  static std::filesystem::path UsualFolder();

  // Fills `parts` with the data that `unpack` writes there: from the cache, or by calling it.  `kind` names the
  // content, "cifar10-v1": older files of the same kind are removed.  Returns false, and keeps nothing, if `unpack`
  // returns false: the archive has other content.
  using Parts = std::span<const std::span<uint8_t>>;
  bool Fill(const std::filesystem::path& archive, const std::string& kind, Parts parts,
            const std::function<bool()>& unpack) const;

 private:
  void Info(const std::string& line) const { say_(log::Level::kInfo, line); }
  void Warn(const std::string& line) const { say_(log::Level::kWarning, line); }
  // True if the folder may be used; creates it if it is missing.
  bool IsTrusted(const std::filesystem::path& archive) const;
  bool FillLocked(const std::filesystem::path& archive, const std::filesystem::path& file,
                  const std::string& kind, Parts parts, const std::function<bool()>& unpack) const;
  bool Load(const std::filesystem::path& file, Parts parts) const;
  void Keep(const std::filesystem::path& file, Parts parts) const;
  void RemoveOthers(const std::filesystem::path& file, const std::string& kind,
                    const std::string& ending) const;

  std::filesystem::path folder_;
  Say say_;
};

}  // namespace dtrain
