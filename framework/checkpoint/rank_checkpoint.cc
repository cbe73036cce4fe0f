#include "framework/checkpoint/rank_checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>

#include "framework/checkpoint/checkpoint_seal.h"
#include "framework/core/bytes.h"
#include "framework/core/file.h"
#include "framework/hdf5/hdf5_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr char kRank[] = "/rank";
constexpr int64_t kFormat = 1;

// A field of the list.  Integers are stored in the list itself, so that only float vectors need a data set of their
// own.
struct FieldEntry {
  int64_t part = 0;  // 0: exchange, 1: host
  std::string owner, name;
  int64_t kind = 0;
  int64_t count = 0;  // number of floats
  std::vector<int64_t> ints;
  DTRAIN_FIELDS(part, owner, name, kind, count, ints)
};

struct FieldList {
  std::vector<FieldEntry> entries;
  DTRAIN_FIELDS(entries)
};

std::string NameOfField(size_t index) { return fmt::format("/fields/{}", index); }

void AddFields(Hdf5Builder& out, int64_t part, const StateRecord& record, FieldList& list) {
  for (const StateField& field : record.fields) {
    FieldEntry entry{part,
                     field.owner,
                     field.name,
                     static_cast<int64_t>(field.kind),
                     static_cast<int64_t>(field.floats.size()),
                     field.ints};
    if (entry.count > 0) {
      out.WriteFloats(NameOfField(list.entries.size()), {entry.count}, field.floats.data());
    }
    list.entries.push_back(std::move(entry));
  }
}

int64_t CountOf(const Hdf5Reader& in, const std::string& name) {
  const std::vector<int64_t> shape = in.ShapeOf(name);
  return shape.size() == 1 ? shape[0] : -1;
}

void ReadFields(const Hdf5Reader& in, RankCheckpoint& content) {
  const std::string source = in.path().string();
  const auto list = FromFileBytes<FieldList>(in.ReadText("/rank/fields"), source);
  for (size_t i = 0; i < list.entries.size(); ++i) {
    const FieldEntry& entry = list.entries[i];
    const bool known =
        entry.kind >= 0 && entry.kind <= static_cast<int64_t>(StateField::Kind::kFloats);
    if (!known || (entry.part != 0 && entry.part != 1)) {
      ThrowDamaged(in.path(), fmt::format("field {} is of no kind that there is", i));
    }
    const int64_t stored = entry.count == 0 ? 0 : CountOf(in, NameOfField(i));
    if (entry.count < 0 || entry.count != stored || entry.count > in.file_bytes()) {
      ThrowDamaged(in.path(), fmt::format("field {} has not {} numbers", i, entry.count));
    }
    StateField field{
        entry.owner, entry.name, static_cast<StateField::Kind>(entry.kind), entry.ints, {}};
    field.floats.resize(static_cast<size_t>(entry.count));
    if (entry.count > 0) in.ReadFloats(NameOfField(i), field.floats);
    (entry.part == 0 ? content.exchange : content.host).fields.push_back(std::move(field));
  }
}

// Throws unless the file is undamaged and has the hash that the main file names.
void CheckBytes(MemoryFile& file, const fs::path& path, const fs::path& main,
                const std::string& hash) {
  const std::string_view bytes = file.Content();
  const std::string problem = SealProblem(bytes);
  if (!problem.empty()) ThrowDamaged(path, problem);
  if (HashInSeal(bytes) == hash) return;
  ThrowDamaged(path,
               fmt::format("it is not the one that {} was written with", main.filename().string()));
}

fs::path CopyInto(MemoryFile& file, const fs::path& main, int64_t rank) {
  fs::path path = RankFileOf(main, rank);
  if (!fs::exists(path)) {
    throw CheckpointError(
        fmt::format("{} is missing, which belongs to {}", path.string(), main.filename().string()),
        "a checkpoint with rank files is whole only with all of them; its weights alone can be "
        "taken with --weights");
  }
  file.CopyFrom(path);
  return path;
}

}  // namespace

fs::path RankFileOf(const fs::path& main, int64_t rank) {
  fs::path path = main;
  return path.replace_extension(fmt::format("rank-{}.h5", rank));
}

std::string WriteRankCheckpoint(const fs::path& main, const RankCheckpoint& content) {
  MakeFolder(main.parent_path());
  Hdf5Builder out(kSealBytes);
  out.SetAttribute(kRank, "format", kFormat);
  out.SetAttribute(kRank, "rank", content.rank);
  out.SetAttribute(kRank, "step", content.step);
  out.SetAttribute(kRank, "samples_applied", content.samples_applied);
  out.SetAttribute(kRank, "role", content.role);
  out.SetAttribute(kRank, "holds", content.holds);
  out.WriteText("/rank/actors", content.actors);
  out.WriteText("/rank/placement", content.placement);
  FieldList list;
  AddFields(out, 0, content.exchange, list);
  AddFields(out, 1, content.host, list);
  out.WriteText("/rank/fields", ToBytes(list));
  MemoryFile& file = out.Finish();
  file.WriteAt(0, SealOf(file.Content().substr(kSealBytes)));
  WriteFileDurably(RankFileOf(main, content.rank), file.Content());
  return HashInSeal(file.Content());
}

RankCheckpoint ReadRankCheckpoint(const fs::path& main, int64_t rank, const std::string& hash) {
  MemoryFile file;
  const fs::path path = CopyInto(file, main, rank);
  CheckBytes(file, path, main, hash);
  const Hdf5Reader in(file, path);
  if (in.IntAttribute(kRank, "format") != kFormat) {
    throw CheckpointError(fmt::format("cannot read {}: a newer program wrote it", path.string()));
  }
  RankCheckpoint content;
  content.rank = in.IntAttribute(kRank, "rank");
  if (content.rank != rank) {
    ThrowDamaged(path, fmt::format("it is the file of rank {}", content.rank));
  }
  content.step = in.IntAttribute(kRank, "step");
  content.samples_applied = in.IntAttribute(kRank, "samples_applied");
  content.role = in.TextAttribute(kRank, "role");
  content.holds = in.TextAttribute(kRank, "holds");
  content.actors = in.ReadText("/rank/actors");
  content.placement = in.ReadText("/rank/placement");
  ReadFields(in, content);
  return content;
}

void CheckRankFiles(const fs::path& main, const CheckpointInfo& info) {
  for (size_t rank = 0; rank < info.rank_files.size(); ++rank) {
    MemoryFile file;
    const fs::path path = CopyInto(file, main, static_cast<int64_t>(rank));
    CheckBytes(file, path, main, info.rank_files[rank]);
  }
}

}  // namespace dtrain
