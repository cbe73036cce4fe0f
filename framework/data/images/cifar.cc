#include "framework/data/images/cifar.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/data/files/archive.h"
#include "framework/data/files/unpack_cache.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t kWorthKeeping = 16 << 20;  // smaller archives unpack in a second

int64_t SamplesOf(const CifarInfo& info, Split split) {
  int64_t samples = 0;
  for (const CifarBatch& batch : info.batches) {
    if (batch.split == split) samples += batch.records;
  }
  return samples;
}

// Collects the batches of a set, found in any order.
class Collector {
 public:
  explicit Collector(const CifarInfo& info);

  // Returns false if the folder has no batch.  Throws if it has only some of them.
  bool ReadLoose(const fs::path& folder);
  // Large archives are unpacked once per machine (unpack_cache.h).
  bool ReadArchive(const fs::path& archive);

  LabelledImages TakeTrain() { return std::move(train_); }
  LabelledImages TakeTest() { return std::move(test_); }

 private:
  struct Slot {
    const CifarBatch& batch;
    LabelledImages& split;
    int64_t first_sample;
    bool filled = false;
  };

  Slot* FindSlot(const std::string& file_name);
  bool Unpack(const fs::path& archive);
  bool Finish(const fs::path& where) const;
  void Fill(Slot& slot, MemberReader& in);

  const CifarInfo& info_;
  LabelledImages train_;
  LabelledImages test_;
  std::vector<Slot> slots_;
};

Collector::Collector(const CifarInfo& info) : info_(info) {
  for (const CifarBatch& batch : info.batches) {
    LabelledImages& split = batch.split == Split::kTrain ? train_ : test_;
    const auto first = static_cast<int64_t>(split.labels.size());
    split.labels.resize(split.labels.size() + static_cast<size_t>(batch.records));
    slots_.push_back({batch, split, first});
  }
  for (LabelledImages* split : {&train_, &test_}) {
    split->images.resize(split->labels.size() * info.images.image_shape.count());
  }
}

Collector::Slot* Collector::FindSlot(const std::string& file_name) {
  const auto it = std::find_if(slots_.begin(), slots_.end(),
                               [&](const Slot& slot) { return slot.batch.name == file_name; });
  return it == slots_.end() ? nullptr : &*it;
}

bool Collector::Finish(const fs::path& where) const {
  std::vector<std::string> missing;
  for (const Slot& slot : slots_) {
    if (!slot.filled) missing.push_back(slot.batch.name);
  }
  if (missing.size() == slots_.size()) return false;
  if (missing.empty()) return true;
  throw DataError(
      fmt::format("{} has {} of the {} batches of '{}', missing: {}", where.string(),
                  slots_.size() - missing.size(), slots_.size(), info_.name, Join(missing)),
      fmt::format("dtrain data fetch {}", info_.name));
}

bool Collector::ReadLoose(const fs::path& folder) {
  for (Slot& slot : slots_) {
    const fs::path path = folder / slot.batch.name;
    if (!fs::exists(path)) continue;
    MemberReader in(path);
    Fill(slot, in);
  }
  return Finish(folder);
}

bool Collector::ReadArchive(const fs::path& archive) {
  std::error_code error;
  if (fs::file_size(archive, error) < kWorthKeeping || error) return Unpack(archive);
  const auto bytes_of = [](std::vector<uint16_t>& labels) {
    return std::span(reinterpret_cast<uint8_t*>(labels.data()), labels.size() * sizeof(uint16_t));
  };
  const std::span<uint8_t> parts[] = {train_.images, bytes_of(train_.labels), test_.images,
                                      bytes_of(test_.labels)};
  return UnpackCache(UnpackCache::UsualFolder()).Fill(archive, info_.name + "-v2", parts, [&] {
    return Unpack(archive);
  });
}

bool Collector::Unpack(const fs::path& archive) {
  MemberReader::VisitAll(archive, [this](const std::string& member, MemberReader& in) {
    if (Slot* slot = FindSlot(fs::path(member).filename().string())) Fill(*slot, in);
  });
  return Finish(archive);
}

// Throws DataError if content follows the last record.
void CheckEnd(MemberReader& in, int64_t records, int64_t record_bytes) {
  uint8_t more;
  if (in.Read(&more, 1) == 0) return;
  throw DataError(fmt::format("{}: content follows at byte {}, where {} of {} bytes end{}",
                              in.name(), in.position() - 1, Counted(records, "record"),
                              record_bytes, records == 1 ? "s" : ""),
                  "its records may be of another size (CIFAR-10: 3073 bytes, CIFAR-100: 3074)");
}

struct WrongLabel {
  int64_t record;
  int64_t column;  // of the record's labels
  int value;
};

std::optional<WrongLabel> FindWrongLabel(std::span<const uint8_t> labels, int64_t record,
                                         const std::vector<int64_t>& classes) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes[i]) return WrongLabel{record, static_cast<int64_t>(i), labels[i]};
  }
  return std::nullopt;
}

DataError LabelError(const MemberReader& in, const WrongLabel& wrong, int64_t record_bytes,
                     int64_t classes) {
  return DataError(fmt::format(
      "{}: the label of record {} (byte {}) is {}, the {} classes are 0 to {}", in.name(),
      wrong.record, wrong.record * record_bytes + wrong.column, wrong.value, classes, classes - 1));
}

// The file's size is checked before its labels: in records of another size these are meaningless.
void Collector::Fill(Slot& slot, MemberReader& in) {
  const std::vector<int64_t>& classes = info_.label_classes;
  const int64_t pixels = info_.images.image_shape.count();
  std::vector<uint8_t> record(classes.size() + static_cast<size_t>(pixels));
  const std::span<const uint8_t> labels(record.data(), classes.size());
  const auto record_bytes = static_cast<int64_t>(record.size());
  std::optional<WrongLabel> wrong;
  for (int64_t r = 0; r < slot.batch.records; ++r) {
    in.ReadExactly(record.data(), record.size(),
                   fmt::format("record {} of {}", r, slot.batch.records));
    if (!wrong) wrong = FindWrongLabel(labels, r, classes);
    const int64_t sample = slot.first_sample + r;
    slot.split.labels[sample] = labels.back();
    std::copy_n(record.data() + labels.size(), pixels, &slot.split.images[sample * pixels]);
  }
  CheckEnd(in, slot.batch.records, record_bytes);
  if (wrong) throw LabelError(in, *wrong, record_bytes, classes[wrong->column]);
  slot.filled = true;
}

// Returns the tar archives in a folder, the published one first.
std::vector<fs::path> ArchivesIn(const fs::path& folder, const std::string& published) {
  std::vector<fs::path> archives;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && IsTarArchive(entry.path())) archives.push_back(entry.path());
  }
  std::sort(archives.begin(), archives.end());
  std::stable_partition(archives.begin(), archives.end(),
                        [&](const fs::path& path) { return path.filename() == published; });
  return archives;
}

void ReadFrom(const fs::path& folder, const CifarInfo& info, Collector& collector) {
  if (collector.ReadLoose(folder) || collector.ReadLoose(folder / info.folder)) return;
  std::vector<std::string> searched;
  for (const fs::path& archive : ArchivesIn(folder, info.archive.name)) {
    if (collector.ReadArchive(archive)) return;
    searched.push_back(archive.filename().string());
  }
  throw DataError(
      fmt::format("{} has no {}, neither unpacked nor in an archive (.tar.gz, .tar.xz); {}",
                  folder.string(), info.batches.front().name,
                  searched.empty() ? "there is no archive"
                                   : "archives without any batch: " + Join(searched)),
      fmt::format("dtrain data fetch {} (the binary version)", info.name));
}

}  // namespace

void CifarSource::Configure(config::Reader& reader) {
  const std::string augment = reader.String("augment", "default")
                                  .OneOf({"default", "none"})
                                  .Help(
                                      "training images: random crop after padding by 4 and random "
                                      "horizontal flip; none: unchanged");
  if (augment == "none") augment_ = {};
}

int64_t CifarSource::size(Split split) const { return SamplesOf(info_, split); }

std::unique_ptr<Dataset> CifarSource::Load(const fs::path& folder, uint64_t seed) const {
  Collector collector(info_);
  ReadFrom(folder, info_, collector);
  return std::make_unique<ImageSet>(info_.images, collector.TakeTrain(), collector.TakeTest(),
                                    augment_, seed);
}

}  // namespace dtrain
