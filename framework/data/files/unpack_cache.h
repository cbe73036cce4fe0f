// UnpackCache: what an archive unpacks to, kept as one file, so that it is unpacked once on a
// machine, not by every rank at every start.
//
// A file is known by its archive (path, size, time of change) and by what was made of it, ends with
// the SHA-256 of its content, and has its name only when it is whole.  One process unpacks at a
// time (flock); the others wait, say so, and then find the content there.  A cache that cannot be
// read or written, for want of rights, of room or of locks, is a warning and costs the time of
// unpacking, nothing else; no half file stays behind.
//
// A file is believed only where it and its folder belong to the user or to root, and nobody else may write to them:
// its own sum says nothing about who wrote it.  So what root has unpacked serves all users.  A folder that is made here
// is the user's alone (mode 0700).
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
  // `say` gets a line about what happens; default: the log.
  using Say = std::function<void(log::Level, const std::string&)>;
  explicit UnpackCache(std::filesystem::path folder, Say say = log::Write);

  // $XDG_CACHE_HOME/dtrain/unpacked or ~/.cache/dtrain/unpacked; empty where neither is known.
  static std::filesystem::path UsualFolder();

  // Fills `parts` with what `unpack` would write there: from the cache, or by calling it.  `kind`
  // names what is made of the archive, "cifar10-v1": older files of the same kind are removed.
  // False, and nothing is kept, where `unpack` says so: the archive is of something else.
  using Parts = std::span<const std::span<uint8_t>>;
  bool Fill(const std::filesystem::path& archive, const std::string& kind, Parts parts,
            const std::function<bool()>& unpack) const;

 private:
  void Info(const std::string& line) const { say_(log::Level::kInfo, line); }
  void Warn(const std::string& line) const { say_(log::Level::kWarning, line); }
  // Whether the folder is to be used; makes it where it is missing.
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
