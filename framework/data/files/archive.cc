#include "framework/data/files/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/stop_request.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlockBytes = size_t{1} << 17;

// Describes the format that a file name implies.
struct Kind {
  int filter;
  bool tar;
};

Kind KindOf(const fs::path& path) {
  std::string name = path.filename().string();
  const auto drop = [&name](std::string_view ending) {
    if (!name.ends_with(ending)) return false;
    name.resize(name.size() - ending.size());
    return true;
  };
  if (drop(".tgz")) return {ARCHIVE_FILTER_GZIP, true};
  if (drop(".txz")) return {ARCHIVE_FILTER_XZ, true};
  if (drop(".gz")) return {ARCHIVE_FILTER_GZIP, drop(".tar")};
  if (drop(".xz")) return {ARCHIVE_FILTER_XZ, drop(".tar")};
  return {ARCHIVE_FILTER_NONE, drop(".tar")};
}

struct FreeArchive {
  void operator()(struct archive* a) const { archive_read_free(a); }
};
using ArchivePointer = std::unique_ptr<struct archive, FreeArchive>;

// Reads a gzip file with zlib, which verifies the checksum and the length at its end; libarchive's own filter does not.
class Gzip {
 public:
  explicit Gzip(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {}
  ~Gzip() { gzclose(file_); }
  Gzip(const Gzip&) = delete;

  // Returns 0 at the end, -1 for damage.
  la_ssize_t Read() {
    const int bytes = gzread(file_, block_.data(), static_cast<unsigned>(block_.size()));
    return bytes == 0 && !Why().empty() ? -1 : bytes;
  }
  const char* block() const { return block_.data(); }
  // Returns "" if nothing is wrong.
  std::string Why() const {
    if (file_ == nullptr) return "it cannot be opened";
    int code = Z_OK;
    const std::string why = gzerror(file_, &code);  // "PATH: reason"
    if (code == Z_OK || code == Z_STREAM_END) return "";
    return why.starts_with(path_) ? why.substr(path_.size() + 2) : why;
  }

 private:
  const std::string path_;
  const gzFile file_;
  std::array<char, kBlockBytes> block_;
};

la_ssize_t ReadGzip(struct archive* a, void* gzip, const void** block) {
  Gzip& from = *static_cast<Gzip*>(gzip);
  *block = from.block();
  const la_ssize_t bytes = from.Read();
  if (bytes < 0) archive_set_error(a, EIO, "%s", from.Why().c_str());
  return bytes;
}

// libarchive passes content through unfiltered if it is not in the filter's format, so the first bytes are checked
// here.
void CheckMagic(const fs::path& path, int filter) {
  if (filter == ARCHIVE_FILTER_NONE) return;
  const bool gzip = filter == ARCHIVE_FILTER_GZIP;
  const std::string_view wanted = gzip ? "\x1f\x8b"
                                       : "\xfd"
                                         "7zXZ";
  std::string found(wanted.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(found.data(), static_cast<std::streamsize>(found.size()));
  if (found == wanted) return;
  throw DataError(
      fmt::format("{} is not {} file: it does not begin with the bytes {}", path.string(),
                  gzip ? "a gzip" : "an xz", gzip ? "1f 8b" : "fd 37 7a 58 5a"),
      "a download may have saved an error page, or the file was unpacked but kept its name");
}

// Holds a file opened for reading.
struct Source {
  std::unique_ptr<Gzip> gzip;  // the archive's input, if compressed with gzip
  ArchivePointer archive;
};

// Prefers zlib's message: libarchive reports content that cannot be unpacked as missing.
std::string WhyOf(const Source& source) {
  const std::string unpacking = source.gzip == nullptr ? "" : source.gzip->Why();
  const char* const why = archive_error_string(source.archive.get());
  if (!unpacking.empty()) return unpacking;
  return why == nullptr ? "it ends too early" : why;
}

Source Open(const fs::path& path, const Kind& kind) {
  std::error_code error, ignored;
  if (!fs::is_regular_file(path, error)) {
    throw DataError(fmt::format("cannot open {}: {}", path.string(),
                                error ? error.message() : "not a regular file"),
                    fs::exists(path, ignored) ? "" : WhereItBegins(path));
  }
  CheckMagic(path, kind.filter);
  Source source{nullptr, ArchivePointer(archive_read_new())};
  struct archive* const a = source.archive.get();
  if (a == nullptr) throw std::bad_alloc();
  if (kind.filter == ARCHIVE_FILTER_XZ) archive_read_support_filter_xz(a);
  if (kind.tar) {
    archive_read_support_format_tar(a);
  } else {
    archive_read_support_format_raw(a);
    archive_read_support_format_empty(a);
  }
  int opened = ARCHIVE_OK;
  if (kind.filter == ARCHIVE_FILTER_GZIP) {
    source.gzip = std::make_unique<Gzip>(path);
    opened = archive_read_open(a, source.gzip.get(), nullptr, ReadGzip, nullptr);
  } else {
    opened = archive_read_open_filename(a, path.c_str(), kBlockBytes);
  }
  if (opened != ARCHIVE_OK) {
    throw DataError(fmt::format("cannot open {}: {}", path.string(), WhyOf(source)),
                    "fetch the file again");
  }
  return source;
}

// A tar archive ends before the file that contains it: the rest is read too, to verify the checksum.
void CheckRest(const Source& source, const fs::path& path) {
  if (source.gzip == nullptr) return;
  la_ssize_t bytes = 0;
  do bytes = source.gzip->Read();
  while (bytes > 0);
  if (bytes == 0) return;
  throw DataError(fmt::format("{} is damaged: {}", path.string(), source.gzip->Why()),
                  "fetch the file again");
}

// Returns the next regular file of the archive; null at its end.  Warnings are ignored: they concern a name's character
// that the locale lacks, and the name is returned as it is written.
archive_entry* NextEntry(const Source& source, const fs::path& path) {
  struct archive* const a = source.archive.get();
  archive_entry* entry = nullptr;
  int status;
  do status = archive_read_next_header(a, &entry);
  while ((status == ARCHIVE_OK || status == ARCHIVE_WARN) &&
         archive_entry_filetype(entry) != AE_IFREG);
  if (status == ARCHIVE_EOF) {
    CheckRest(source, path);
    return nullptr;
  }
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
    throw DataError(fmt::format("{} is damaged: {}, near byte {} of the unpacked archive",
                                path.string(), WhyOf(source), archive_filter_bytes(a, 0)),
                    "fetch the file again");
  }
  return entry;
}

bool Matches(const std::string& path, const std::string& member) {
  return path == member || path.ends_with("/" + member);
}

// Advances to the member's bytes.
void FindMember(const Source& source, const fs::path& path, const std::string& member) {
  std::vector<std::string> seen;
  while (archive_entry* entry = NextEntry(source, path)) {
    seen.emplace_back(archive_entry_pathname(entry));
    if (Matches(seen.back(), member)) return;
  }
  throw DataError(
      fmt::format("{} has no member '{}'; it has: {}", path.string(), member, Join(seen)));
}

}  // namespace

struct MemberReader::Impl {
  Impl(const fs::path& path, const Kind& kind)
      : source(Open(path, kind)), compressed(kind.filter != ARCHIVE_FILTER_NONE) {}

  std::string name;
  const Source source;
  const bool compressed;
  int64_t position = 0;
  bool empty = false;  // true if there is not even an empty entry to read
};

MemberReader::MemberReader(const fs::path& path, const std::string& member) {
  const Kind kind = KindOf(path);
  impl_ = std::make_unique<Impl>(path, kind);
  impl_->name = kind.tar ? path.string() + ":" + member : path.string();
  if (kind.tar) {
    FindMember(impl_->source, path, member);
  } else {
    impl_->empty = NextEntry(impl_->source, path) == nullptr;
  }
}

MemberReader::MemberReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

void MemberReader::VisitAll(const fs::path& path, const Visitor& visit) {
  const Kind kind = KindOf(path);
  DT_CHECK(kind.tar) << path << " is no tar archive by its name";
  MemberReader in(std::make_unique<Impl>(path, kind));
  while (archive_entry* entry = NextEntry(in.impl_->source, path)) {
    const std::string member = archive_entry_pathname(entry);
    in.impl_->name = path.string() + ":" + member;
    in.impl_->position = 0;
    visit(member, in);
  }
}

MemberReader::~MemberReader() = default;
MemberReader::MemberReader(MemberReader&&) noexcept = default;

size_t MemberReader::Read(void* to, size_t bytes) {
  if (impl_->empty) return 0;
  if (StopRequested()) EndIfStopped("reading " + name());
  la_ssize_t got;  // fewer than `bytes` only at the end
  do got = archive_read_data(impl_->source.archive.get(), to, bytes);
  while (got == ARCHIVE_RETRY);
  if (got < 0) {
    throw DataError(fmt::format("{} is damaged after byte {}: {}", name(), impl_->position,
                                WhyOf(impl_->source)),
                    "fetch the file again");
  }
  impl_->position += got;
  return static_cast<size_t>(got);
}

void MemberReader::ReadExactly(void* to, size_t bytes, std::string_view what) {
  const int64_t begin = impl_->position;
  if (Read(to, bytes) == bytes) return;
  throw DataError(fmt::format("{} ends at byte {}, inside {} (bytes {} to {})", name(),
                              impl_->position, what, begin, begin + static_cast<int64_t>(bytes)),
                  "the file is truncated: fetch it again");
}

int64_t MemberReader::position() const { return impl_->position; }
const std::string& MemberReader::name() const { return impl_->name; }
bool MemberReader::compressed() const { return impl_->compressed; }

bool IsTarArchive(const fs::path& path) { return KindOf(path).tar; }

std::vector<std::string> ListMembers(const fs::path& path) {
  Kind kind = KindOf(path);
  kind.tar = true;
  const Source source = Open(path, kind);
  std::vector<std::string> members;
  while (archive_entry* entry = NextEntry(source, path)) {
    members.emplace_back(archive_entry_pathname(entry));
  }
  return members;
}

}  // namespace dtrain
