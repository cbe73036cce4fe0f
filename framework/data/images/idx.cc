#include "framework/data/images/idx.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/data/files/archive.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kImagesMagic = 2051;
constexpr uint32_t kLabelsMagic = 2049;
constexpr uint64_t kMaxBytes = uint64_t{64} << 30;

// Deflate stores at most 258 bytes in 2 bits (RFC 1951, 3.2.5), so a gzip file cannot hold more
// than about 1032 times its size.
constexpr uint64_t kMaxGzipRatio = 1032;

uint32_t ReadBigEndian(MemberReader& in) {
  uint8_t b[4];
  in.ReadExactly(b, sizeof b, "the header");
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
}

void CheckMagic(MemberReader& in, uint32_t wanted, const char* what) {
  const uint32_t magic = ReadBigEndian(in);
  if (magic == wanted) return;
  std::string hint;
  if (magic >> 16 == 0x1f8b) hint = "this is a gzip file: give its name the ending .gz";
  if (magic == kImagesMagic || magic == kLabelsMagic) hint = "images and labels may be exchanged";
  throw DataError(fmt::format("{}: the magic number at byte 0 is {} (0x{:08x}), IDX {} have {}",
                              in.name(), magic, magic, what, wanted),
                  hint);
}

// Throws if the header promises more than the file can hold.  `content` describes it: "60000 images of 28 x 28".
void CheckPromise(const MemberReader& in, const fs::path& path, unsigned __int128 bytes,
                  const std::string& content) {
  const uint64_t on_disk = fs::file_size(path);
  const uint64_t room = in.compressed() ? on_disk * kMaxGzipRatio : on_disk;
  if (bytes <= std::min(room, kMaxBytes)) return;
  throw DataError(
      fmt::format("{}: the header (bytes 4 to {}) promises {}, {}, more than {}", path.string(),
                  in.position(), content, HumanBytes(static_cast<double>(bytes)),
                  bytes > kMaxBytes ? "dtrain loads (" + HumanBytes(kMaxBytes) + ")"
                                    : fmt::format("a file of {} bytes can hold", on_disk)),
      "the file is truncated or damaged: fetch it again");
}

// Reads the content after the header; nothing may follow it.
std::vector<uint8_t> ReadContent(MemberReader& in, uint64_t bytes, const std::string& content) {
  std::vector<uint8_t> values(bytes);
  in.ReadExactly(values.data(), bytes, content);
  uint8_t more;
  if (in.Read(&more, 1) == 0) return values;
  throw DataError(fmt::format("{}: content follows at byte {}, where the {} of the header end",
                              in.name(), in.position() - 1, content),
                  "the header does not belong to this content: fetch the file again");
}

IdxHeader ReadHeader(MemberReader& in) {
  CheckMagic(in, kImagesMagic, "images");
  IdxHeader header;
  header.count = ReadBigEndian(in);
  header.rows = ReadBigEndian(in);
  header.columns = ReadBigEndian(in);
  return header;
}

// Returns the names under which a file is searched, the publisher's first.
std::vector<std::string> Spellings(const std::string& name) {
  std::string dotted = name;
  dotted[dotted.find("-idx")] = '.';
  return {name + ".gz", name, dotted + ".gz", dotted};
}

fs::path FindFile(const fs::path& folder, const std::string& name, const std::string& set) {
  std::vector<std::string> names = Spellings(name);
  for (const std::string& spelling : names) {
    if (fs::exists(folder / spelling)) return folder / spelling;
  }
  throw DataError(fmt::format("{} has none of {}", folder.string(), Join(names)),
                  fmt::format("dtrain data fetch {}", set));
}

}  // namespace

IdxHeader ReadIdxHeader(const fs::path& path) {
  MemberReader in(path);
  return ReadHeader(in);
}

IdxImages ReadIdxImages(const fs::path& path) {
  MemberReader in(path);
  IdxImages images{ReadHeader(in), {}};
  const auto bytes = static_cast<unsigned __int128>(images.count) * images.rows * images.columns;
  const std::string content =
      fmt::format("{} of {} x {}", Counted(images.count, "image"), images.rows, images.columns);
  CheckPromise(in, path, bytes, content);
  images.pixels = ReadContent(in, static_cast<uint64_t>(bytes), content);
  return images;
}

std::vector<uint8_t> ReadIdxLabels(const fs::path& path, int64_t classes) {
  MemberReader in(path);
  CheckMagic(in, kLabelsMagic, "labels");
  const uint64_t count = ReadBigEndian(in);
  const std::string content = Counted(static_cast<int64_t>(count), "label");
  CheckPromise(in, path, count, content);
  std::vector<uint8_t> labels = ReadContent(in, count, content);
  const auto wrong = std::find_if(labels.begin(), labels.end(),
                                  [classes](uint8_t label) { return label >= classes; });
  if (wrong == labels.end()) return labels;
  const int64_t sample = wrong - labels.begin();
  throw DataError(
      fmt::format("{}: the label of sample {} (byte {}) is {}, the {} classes are 0 to {}",
                  path.string(), sample, 8 + sample, *wrong, classes, classes - 1));
}

LabelledImages ReadLabelledIdx(const fs::path& image_path, const fs::path& label_path,
                               const ImageSetSpec& spec) {
  IdxImages images = ReadIdxImages(image_path);
  const Shape& shape = spec.image_shape;
  if (images.rows != shape[1] || images.columns != shape[2]) {
    throw DataError(fmt::format("{}: images of {} x {} (bytes 8 to 16), not of {} x {}",
                                image_path.string(), images.rows, images.columns, shape[1],
                                shape[2]));
  }
  const std::vector<uint8_t> labels = ReadIdxLabels(label_path, spec.classes);
  if (static_cast<int64_t>(labels.size()) != images.count || labels.empty()) {
    throw DataError(
        fmt::format("{} has {}, {} has {}", image_path.string(), Counted(images.count, "image"),
                    label_path.string(), Counted(std::ssize(labels), "label")),
        "the two files must come from the same set");
  }
  return {std::move(images.pixels), {labels.begin(), labels.end()}};
}

LabelledImages IdxSource::LoadSplit(const fs::path& folder, const std::string& prefix) const {
  return ReadLabelledIdx(FindFile(folder, prefix + "-images-idx3-ubyte", info_.name),
                         FindFile(folder, prefix + "-labels-idx1-ubyte", info_.name), info_.images);
}

std::unique_ptr<Dataset> IdxSource::Load(const fs::path& folder, uint64_t seed) const {
  LabelledImages train = LoadSplit(folder, "train");
  LabelledImages test = LoadSplit(folder, "t10k");
  return std::make_unique<ImageSet>(info_.images, std::move(train), std::move(test));
}

}  // namespace dtrain
