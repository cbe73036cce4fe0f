#include "framework/data/files/unpack_cache.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/dataset.h"
#include "framework/data/files/file_lock.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

std::string HashOf(UnpackCache::Parts parts) {
  Sha256 hash;
  for (const std::span<uint8_t>& part : parts) hash.Update(part.data(), part.size());
  return hash.HexDigest();
}

uintmax_t BytesOf(UnpackCache::Parts parts) {
  uintmax_t bytes = 0;
  for (const std::span<uint8_t>& part : parts) bytes += part.size();
  return bytes;
}

// Another archive of the same path, or other parts, have another name.
std::string NameOf(const fs::path& archive, const std::string& kind, UnpackCache::Parts parts) {
  std::string facts =
      fmt::format("{}\n{}\n{}\n", fs::absolute(archive).string(), fs::file_size(archive),
                  fs::last_write_time(archive).time_since_epoch().count());
  for (const std::span<uint8_t>& part : parts) facts += fmt::format("{}\n", part.size());
  return fmt::format("{}-{}.bin", kind, Sha256::Of(facts).substr(0, 16));
}

void Write(const fs::path& path, UnpackCache::Parts parts) {
  ::close(CreateFile(path));  // in the place of a link, which would be followed
  std::ofstream out(path, std::ios::binary);
  for (const std::span<uint8_t>& part : parts) {
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size()));
  }
  out << HashOf(parts);
  out.close();
  if (!out) {
    throw DataError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
}

}  // namespace

UnpackCache::UnpackCache(fs::path folder, Say say)
    : folder_(std::move(folder)), say_(std::move(say)) {}

fs::path UnpackCache::UsualFolder() {
  try {
    return FetchFolder("unpacked", "");
  } catch (const DataError&) {
    return {};
  }
}

bool UnpackCache::Fill(const fs::path& archive, const std::string& kind, Parts parts,
                       const std::function<bool()>& unpack) const {
  fs::path file;
  std::unique_ptr<FileLock> lock;
  try {
    if (!folder_.empty()) {
      file = folder_ / NameOf(archive, kind, parts);
      if (Load(file, parts)) return true;
      MakeFolder(folder_);
      lock = std::make_unique<FileLock>(folder_ / (kind + ".lock"), [&] {
        Info(fmt::format("another process is unpacking {}; waiting for it", archive.string()));
      });
    }
  } catch (const std::exception& error) {
    Warn(fmt::format("nothing can be kept in {}, so {} is unpacked at every start: {}",
                     folder_.string(), archive.string(), error.what()));
  }
  if (lock) return FillLocked(archive, file, kind, parts, unpack);
  Info(fmt::format("unpacking {}", archive.string()));
  return unpack();
}

bool UnpackCache::FillLocked(const fs::path& archive, const fs::path& file, const std::string& kind,
                             Parts parts, const std::function<bool()>& unpack) const {
  if (Load(file, parts)) return true;  // while this process waited
  Info(fmt::format("unpacking {}; kept in {} for the next time", archive.string(),
                   folder_.string()));
  if (!unpack()) return false;
  try {
    RemoveOthers(file, kind, ".part");
    Keep(file, parts);
    RemoveOthers(file, kind, ".bin");
  } catch (const std::exception& error) {
    Warn(fmt::format("what {} unpacks to is not kept: {}", archive.string(), error.what()));
  }
  return true;
}

bool UnpackCache::Load(const fs::path& file, Parts parts) const {
  constexpr size_t kHashDigits = 64;
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  if (error) return false;
  std::string hash(kHashDigits, '\0');
  std::ifstream in(file, std::ios::binary);
  for (const std::span<uint8_t>& part : parts) {
    in.read(reinterpret_cast<char*>(part.data()), static_cast<std::streamsize>(part.size()));
  }
  in.read(hash.data(), kHashDigits);
  if (in && bytes == BytesOf(parts) + kHashDigits && HashOf(parts) == hash) return true;
  Info(fmt::format("{} is damaged; it is made again", file.string()));
  return false;
}

void UnpackCache::Keep(const fs::path& file, Parts parts) const {
  const fs::path part = file.string() + fmt::format(".{}.part", ::getpid());
  try {
    Write(part, parts);
    PublishDurably(part, file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw;
  }
}

// Files of other archives of this kind (.bin), which this one replaces, or parts of a process that
// was killed (.part): the lock is ours.
void UnpackCache::RemoveOthers(const fs::path& file, const std::string& kind,
                               const std::string& ending) const {
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(kind + "-") && name.ends_with(ending) && it->path() != file) {
      others.push_back(it->path());
    }
  }
  for (const fs::path& other : others) fs::remove(other, error);
}

}  // namespace dtrain
