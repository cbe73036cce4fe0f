#include "framework/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <string_view>
#include <vector>

#include "framework/checkpoint/checkpoint_seal.h"
#include "framework/checkpoint/stored_checkpoint.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/hdf5/hdf5_file.h"

namespace dtrain {
namespace {

static_assert(std::endian::native == std::endian::little, "the hash is over little-endian floats");

struct Chunk {
  std::string_view name;
  const float* values;
  int64_t count;
};

void Collect(const ArenaLayout& layout, const float* arena, std::vector<Chunk>& chunks) {
  for (const ArenaEntry& entry : layout.entries) {
    chunks.push_back({entry.name, arena + entry.range.begin, entry.range.size()});
  }
}

}  // namespace

std::vector<float> Arranged(std::vector<float> values, const ArenaLayout& from,
                            const ArenaLayout& to, const std::string& origin) {
  const auto is_alike = [](const ArenaEntry& a, const ArenaEntry& b) {
    return a.name == b.name && a.range.size() == b.range.size();
  };
  if (std::ranges::equal(from.entries, to.entries, is_alike)) return values;
  std::vector<float> arranged(static_cast<size_t>(to.size()));
  for (const ArenaEntry& entry : to.entries) {
    const auto stored = std::ranges::find(from.entries, entry.name, &ArenaEntry::name);
    if (stored == from.entries.end() || !is_alike(*stored, entry)) {
      throw CheckpointError(
          fmt::format("{}: '{}' of its model is missing or has another shape", origin, entry.name));
    }
    std::copy_n(values.begin() + stored->range.begin, entry.range.size(),
                arranged.begin() + entry.range.begin);
  }
  return arranged;
}

namespace fs = std::filesystem;
namespace {

std::string VocabulariesOf(const std::string& text, const std::string& origin) {
  if (text.empty()) return "none";
  const TextInfo info = TextInfoFromText(text, origin);
  return fmt::format("{} and {} words, {}", info.source.size(), info.target.size(),
                     info.Hash().substr(0, 12));
}

std::vector<int64_t> StoredShape(const ArenaEntry& entry) {
  return entry.shape.empty() ? std::vector<int64_t>{1} : entry.shape;
}

// Returns "" if the stored parameters are those of the model, in any order.  Arenas are in reverse order of the layers,
// so going through them backwards finds the model's first difference.
std::string DifferenceBetween(const ArenaLayout& stored, const ArenaLayout& model) {
  std::vector<const ArenaEntry*> rest;
  for (const ArenaEntry& entry : stored.entries) rest.push_back(&entry);
  for (const ArenaEntry& entry : model.entries | std::views::reverse) {
    const auto found =
        std::find_if(rest.begin(), rest.end(), [&](auto* one) { return one->name == entry.name; });
    if (found == rest.end()) return fmt::format("it lacks '{}' {}", entry.name, entry.shape);
    if ((*found)->shape != StoredShape(entry)) {
      return fmt::format("'{}' is {} there and {} here", entry.name, (*found)->shape, entry.shape);
    }
    rest.erase(found);
  }
  if (rest.empty()) return "";
  return fmt::format("it has '{}' {}, which this model lacks", rest.front()->name,
                     rest.front()->shape);
}

constexpr const char* kToResume =
    "use the config.yaml beside it, or start afresh with --resume none in another --output";
constexpr const char* kToBeginWith =
    "use the config.yaml beside it; to start a layer with random weights, name it in "
    "weights.except";

void CheckModel(const fs::path& path, const StoredCheckpoint& stored, const ModelLayout& layout,
                const char* hint) {
  std::string difference = DifferenceBetween(stored.layout.parameters, layout.parameters);
  if (difference.empty()) difference = DifferenceBetween(stored.layout.state, layout.state);
  if (difference.empty()) return;
  throw CheckpointMismatch(fmt::format("checkpoint {} is of another model ('{}'): {}",
                                       path.string(), stored.info.model, difference),
                           hint);
}

Checkpoint FitTo(const ModelLayout& layout, const fs::path& path, StoredCheckpoint stored,
                 const char* hint) {
  CheckVocabularies(path, stored.info, layout);
  CheckModel(path, stored, layout, hint);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.info = std::move(stored.info);
  checkpoint.weights = Arranged(std::move(stored.weights), stored.layout.parameters,
                                layout.parameters, path.string());
  checkpoint.state =
      Arranged(std::move(stored.state), stored.layout.state, layout.state, path.string());
  for (auto& [vector, values] : stored.solver) {
    checkpoint.solver[vector] =
        Arranged(std::move(values), stored.layout.parameters, layout.parameters, path.string());
  }
  return checkpoint;
}

}  // namespace

void CheckVocabularies(const fs::path& path, const CheckpointInfo& info,
                       const ModelLayout& layout) {
  if (layout.text.empty() || layout.text == info.text) return;
  throw CheckpointMismatch(
      fmt::format("checkpoint {} has other vocabularies than the data set: {} there, {} here",
                  path.string(), VocabulariesOf(info.text, path.string()),
                  VocabulariesOf(layout.text, "the data set")),
      "use the data set, data.text and data.direction of the run that wrote it");
}

void WriteCheckpoint(const fs::path& path, const CheckpointView& view) {
  Hdf5Builder out(kSealBytes);
  WriteContent(out, view);
  MemoryFile& file = out.Finish();
  file.WriteAt(0, SealOf(file.Content().substr(kSealBytes)));
  WriteFileDurably(path, file.Content());
}

Checkpoint ReadCheckpoint(const fs::path& path, const ModelLayout& layout) {
  Checkpoint checkpoint =
      FitTo(layout, path, ReadStoredCheckpoint(path, CheckpointPart::kAll), kToResume);
  if (checkpoint.info.plan_json.empty()) {
    throw CheckpointError(
        fmt::format("{} holds weights alone: there is no run to resume", path.string()),
        "start a new run from them with --weights");
  }
  return checkpoint;
}

Checkpoint ReadWeights(const fs::path& path, const ModelLayout& layout) {
  return FitTo(layout, path, ReadStoredCheckpoint(path, CheckpointPart::kModel), kToBeginWith);
}

std::string WeightsSha256(const ModelLayout& layout, const float* weights, const float* state) {
  std::vector<Chunk> chunks;
  Collect(layout.parameters, weights, chunks);
  Collect(layout.state, state, chunks);
  std::ranges::sort(chunks, {}, &Chunk::name);
  Sha256 hash;
  for (const Chunk& chunk : chunks) hash.Update(chunk.values, chunk.count * sizeof(float));
  return hash.HexDigest();
}

}  // namespace dtrain
