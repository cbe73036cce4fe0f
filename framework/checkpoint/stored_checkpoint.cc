#include "framework/checkpoint/stored_checkpoint.h"

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_seal.h"
#include "framework/core/bytes.h"
#include "framework/hdf5/child_call.h"
#include "framework/hdf5/hdf5_file.h"
#include "framework/hdf5/memory_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Holds the child's answer.  It is sealed, so that a truncated answer is detected.
struct Answer {
  StoredCheckpoint stored;
  DTRAIN_FIELDS(stored.info.position, stored.info.seed, stored.info.model, stored.info.solver,
                stored.info.config_yaml, stored.info.plan_json, stored.info.source_revision,
                stored.info.text, stored.layout.parameters, stored.layout.state, stored.weights,
                stored.state, stored.solver)
};

// The limits suffice for a slow machine with many ranks.  HDF5 reads 1 GB in some seconds and holds one chunk in
// memory.
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
        const std::string packed =
            ToBytes(Answer{ReadContent(in, CheckpointFormat::kWithoutSeal, part)});
        answer.WriteAt(kSealBytes, packed);
        answer.WriteAt(0, SealOf(packed));
      },
      LimitsFor(bytes));
  const std::string_view content = answer.Content();
  const std::string problem = SealProblem(content);
  if (!problem.empty()) ThrowDamaged(path, "the process that read it returned invalid data");
  return FromBytes<Answer>(content.substr(kSealBytes)).stored;
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
