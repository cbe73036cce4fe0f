// UnpackCache: what an archive unpacks to, kept as one file, so that it is unpacked once on a
// machine, not by every rank at every start.
//
// A file is known by its archive (path, size, time of change) and by what was made of it, ends with
// the SHA-256 of its content, and has its name only when it is whole.  One process unpacks at a
// time (flock); the others wait, say so, and then find the content there.  A cache that cannot be
// read or written is told about once and costs the time of unpacking, nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace dtrain {

class UnpackCache {
 public:
  // `say` gets a line about what happens; default: the log.
  explicit UnpackCache(std::filesystem::path folder,
                       std::function<void(const std::string&)> say = nullptr);

  // $XDG_CACHE_HOME/dtrain/unpacked or ~/.cache/dtrain/unpacked; empty where neither is known.
  static std::filesystem::path UsualFolder();

  // Fills `parts` with what `unpack` would write there: from the cache, or by calling it.  `kind`
  // names what is made of the archive, "cifar10-v1": older files of the same kind are removed.
  // False, and nothing is kept, where `unpack` says so: the archive is of something else.
  using Parts = std::span<const std::span<uint8_t>>;
  bool Fill(const std::filesystem::path& archive, const std::string& kind, Parts parts,
            const std::function<bool()>& unpack) const;

 private:
  bool FillLocked(const std::filesystem::path& archive, const std::filesystem::path& file,
                  const std::string& kind, Parts parts, const std::function<bool()>& unpack) const;
  bool Load(const std::filesystem::path& file, Parts parts) const;
  void Keep(const std::filesystem::path& file, const std::string& kind, Parts parts) const;

  std::filesystem::path folder_;
  std::function<void(const std::string&)> say_;
};

}  // namespace dtrain
