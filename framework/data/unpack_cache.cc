#include "framework/data/unpack_cache.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/sha256.h"
#include "framework/data/dataset.h"
#include "framework/data/file_lock.h"

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
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const std::span<uint8_t>& part : parts) {
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size()));
  }
  out << HashOf(parts);
  out.close();
  if (out) return;
  const std::string reason = std::strerror(errno);
  std::error_code ignored;
  fs::remove(path, ignored);
  throw CheckpointError(fmt::format("cannot write {}: {}", path.string(), reason));
}

}  // namespace

UnpackCache::UnpackCache(fs::path folder, std::function<void(const std::string&)> say)
    : folder_(std::move(folder)), say_(std::move(say)) {
  if (!say_) say_ = [](const std::string& line) { log::Info("{}", line); };
}

fs::path UnpackCache::UsualFolder() {
  try {
    return FetchFolder("unpacked", "");
  } catch (const DataError&) {
    return {};
  }
}

bool UnpackCache::Fill(const fs::path& archive, const std::string& kind, Parts parts,
                       const std::function<bool()>& unpack) const {
  const fs::path file = folder_ / NameOf(archive, kind, parts);
  if (!folder_.empty() && Load(file, parts)) return true;
  std::unique_ptr<FileLock> lock;
  try {
    if (!folder_.empty()) {
      MakeFolder(folder_);
      lock = std::make_unique<FileLock>(folder_ / (kind + ".lock"), [&] {
        say_(fmt::format("another process is unpacking {}; waiting for it", archive.string()));
      });
    }
  } catch (const Error& error) {
    say_(fmt::format("nothing can be kept in {}: {}", folder_.string(), error.what()));
  }
  if (lock) return FillLocked(archive, file, kind, parts, unpack);
  say_(fmt::format("unpacking {}", archive.string()));
  return unpack();
}

bool UnpackCache::FillLocked(const fs::path& archive, const fs::path& file, const std::string& kind,
                             Parts parts, const std::function<bool()>& unpack) const {
  if (Load(file, parts)) return true;  // while this process waited
  say_(fmt::format("unpacking {}; kept in {} for the next time", archive.string(),
                   folder_.string()));
  if (!unpack()) return false;
  try {
    Keep(file, kind, parts);
  } catch (const Error& error) {
    say_(fmt::format("what {} unpacks to is not kept: {}", archive.string(), error.what()));
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
  say_(fmt::format("{} is damaged; it is made again", file.string()));
  return false;
}

void UnpackCache::Keep(const fs::path& file, const std::string& kind, Parts parts) const {
  const fs::path part = file.string() + fmt::format(".{}.part", ::getpid());
  Write(part, parts);
  PublishDurably(part, file);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    const bool older = name.starts_with(kind + "-") && name.ends_with(".bin");
    if (older && entry.path() != file) fs::remove(entry.path(), ignored);
  }
}

}  // namespace dtrain
