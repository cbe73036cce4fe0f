#include "framework/runtime/weights/stored_checkpoint.h"

#include <fmt/format.h>

#include "framework/core/bytes.h"
#include "framework/runtime/weights/checkpoint_content.h"
#include "framework/runtime/weights/checkpoint_seal.h"
#include "framework/runtime/weights/child_call.h"
#include "framework/runtime/weights/memory_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void ThrowDamaged(const fs::path& path, const std::string& problem) {
  throw CheckpointError(fmt::format("{} is damaged: {}", path.string(), problem),
                        "take an older checkpoint, or a copy of this one");
}

void PackLayout(const ArenaLayout& layout, ByteWriter& out) {
  out.Value<uint64_t>(layout.entries.size());
  for (const ArenaEntry& entry : layout.entries) {
    out.Text(entry.name);
    out.Values(entry.shape);
    out.Value(entry.range);
  }
}

ArenaLayout UnpackLayout(ByteReader& in) {
  ArenaLayout layout;
  for (uint64_t entries = in.Value<uint64_t>(); entries > 0; --entries) {
    ArenaEntry entry;
    entry.name = in.Text();
    entry.shape = in.Values<int64_t>();
    entry.range = in.Value<Range>();
    layout.entries.push_back(std::move(entry));
  }
  return layout;
}

// The child's answer.  It is sealed, so that an answer that was cut short is refused.
std::string Pack(const StoredCheckpoint& stored) {
  ByteWriter out;
  out.Value(stored.info.position);
  out.Value(stored.info.seed);
  for (const std::string* text :
       {&stored.info.model, &stored.info.solver, &stored.info.config_yaml, &stored.info.plan_json,
        &stored.info.source_revision, &stored.info.text}) {
    out.Text(*text);
  }
  PackLayout(stored.layout.parameters, out);
  PackLayout(stored.layout.state, out);
  out.Values(stored.weights);
  out.Values(stored.state);
  for (const auto& [vector, values] : stored.solver) {
    out.Text(vector);
    out.Values(values);
  }
  return out.Take();
}

StoredCheckpoint Unpack(std::string_view bytes) {
  ByteReader in(bytes);
  StoredCheckpoint stored;
  stored.info.position = in.Value<TrainingPosition>();
  stored.info.seed = in.Value<uint64_t>();
  for (std::string* text :
       {&stored.info.model, &stored.info.solver, &stored.info.config_yaml, &stored.info.plan_json,
        &stored.info.source_revision, &stored.info.text}) {
    *text = in.Text();
  }
  stored.layout.parameters = UnpackLayout(in);
  stored.layout.state = UnpackLayout(in);
  stored.weights = in.Values<float>();
  stored.state = in.Values<float>();
  while (!in.AtEnd()) {
    const std::string vector = in.Text();
    stored.solver[vector] = in.Values<float>();
  }
  return stored;
}

// Enough for a slow machine with many ranks; HDF5 reads 1 GB in some seconds, and holds a chunk.
ChildLimits LimitsFor(uint64_t file_bytes) {
  const auto megabytes = static_cast<int64_t>(file_bytes >> 20);
  ChildLimits limits;
  limits.compute_seconds += megabytes / 10;
  limits.wait_seconds += megabytes;
  limits.memory_bytes += 8 * static_cast<int64_t>(file_bytes);
  return limits;
}

StoredCheckpoint ReadWithoutSeal(const MemoryFile& file, uint64_t bytes, const fs::path& path,
                                 CheckpointPart part) {
  MemoryFile answer;
  RunInChild(
      "read " + path.string(),
      [&] {
        const Hdf5Reader in(file, path);
        const std::string packed = Pack(ReadContent(in, CheckpointFormat::kWithoutSeal, part));
        answer.WriteAt(kSealBytes, packed);
        answer.WriteAt(0, SealOf(packed));
      },
      LimitsFor(bytes));
  const std::string_view content = answer.Content();
  const std::string problem = SealProblem(content);
  if (!problem.empty()) ThrowDamaged(path, "the process that read it answered nonsense");
  return Unpack(content.substr(kSealBytes));
}

void CheckSeal(std::string_view bytes, const fs::path& path) {
  const std::string problem = SealProblem(bytes);
  if (problem.empty()) return;
  const int64_t version = SealVersionOf(bytes);
  if (version <= kSealVersion) ThrowDamaged(path, problem);
  throw CheckpointError(
      fmt::format(
          "cannot read {}: a newer program wrote it (its first block has version {}, not {})",
          path.string(), version, kSealVersion),
      "read it with that program; if there is none, the file is damaged");
}

}  // namespace

StoredCheckpoint ReadStoredCheckpoint(const fs::path& path, CheckpointPart part) {
  MemoryFile file;
  file.CopyFrom(path);
  const std::string_view bytes = file.Content();
  switch (KindOf(bytes)) {
    case FileKind::kSealed:
      CheckSeal(bytes, path);
      return ReadContent(Hdf5Reader(file, path), CheckpointFormat::kSealed, part);
    case FileKind::kHdf5:
      return ReadWithoutSeal(file, bytes.size(), path, part);
    case FileKind::kOther:
      break;
  }
  throw CheckpointError(
      fmt::format("cannot read {}: it is neither a checkpoint nor a safetensors file",
                  path.string()),
      "give a step-N.h5 file, a run folder or a .safetensors file");
}

}  // namespace dtrain
