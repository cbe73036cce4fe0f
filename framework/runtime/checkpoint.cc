#include "framework/runtime/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "framework/core/check.h"
#include "framework/core/file.h"
#include "framework/data/sentence_pairs.h"
#include "framework/runtime/hdf5_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kFormat = 1;
constexpr char kRun[] = "/run";

void WriteArena(Hdf5Builder& out, const std::string& group, const ArenaLayout& layout,
                const float* values) {
  DT_CHECK(values != nullptr || layout.size() == 0) << group << " has a layout but no values";
  for (const ArenaEntry& entry : layout.entries) {
    out.WriteFloats(group + "/" + entry.name, entry.shape, values + entry.range.begin);
  }
}

void WriteInfo(Hdf5Builder& out, const CheckpointInfo& info) {
  out.SetAttribute(kRun, "format", kFormat);
  out.SetAttribute(kRun, "epoch", info.position.epoch);
  out.SetAttribute(kRun, "step", info.position.step);
  out.SetAttribute(kRun, "samples_applied", info.position.samples_applied);
  out.SetAttribute(kRun, "updates", info.position.updates);
  out.SetAttribute(kRun, "seed", static_cast<int64_t>(info.seed));
  out.SetAttribute(kRun, "model", info.model);
  out.SetAttribute(kRun, "solver", info.solver);
  out.SetAttribute(kRun, "source_revision", info.source_revision);
  out.WriteText("/run/config", info.config_yaml);
  out.WriteText("/run/plan", info.plan_json);
  if (!info.text.empty()) out.WriteText("/run/text", info.text);
}

CheckpointInfo ReadInfo(const Hdf5Reader& in) {
  if (const int64_t format = in.IntAttribute(kRun, "format"); format != kFormat) {
    throw CheckpointError(fmt::format("cannot read {}: its format is {}, this program knows {}",
                                      in.path().string(), format, kFormat));
  }
  CheckpointInfo info;
  info.position.epoch = in.IntAttribute(kRun, "epoch");
  info.position.step = in.IntAttribute(kRun, "step");
  info.position.samples_applied = in.IntAttribute(kRun, "samples_applied");
  info.position.updates = in.IntAttribute(kRun, "updates");
  info.seed = static_cast<uint64_t>(in.IntAttribute(kRun, "seed"));
  info.model = in.TextAttribute(kRun, "model");
  info.solver = in.TextAttribute(kRun, "solver");
  info.source_revision = in.TextAttribute(kRun, "source_revision");
  info.config_yaml = in.ReadText("/run/config");
  info.plan_json = in.ReadText("/run/plan");
  const std::vector<std::string> parts = in.Children(kRun);
  if (std::find(parts.begin(), parts.end(), "text") != parts.end()) {
    info.text = in.ReadText("/run/text");
  }
  return info;
}

[[noreturn]] void ThrowMismatch(const Hdf5Reader& in, const std::string& difference) {
  throw CheckpointMismatch(
      fmt::format("checkpoint {} is of another model ('{}'): {}", in.path().string(),
                  in.TextAttribute(kRun, "model"), difference),
      "use the config.yaml beside it, or start afresh with --resume none in another --output");
}

std::string VocabulariesOf(const std::string& text, const std::string& origin) {
  if (text.empty()) return "none";
  const TextFacts facts = TextFactsFromText(text, origin);
  return fmt::format("{} and {} words, {}", facts.source.size(), facts.target.size(),
                     facts.Hash().substr(0, 12));
}

std::vector<int64_t> StoredShape(const ArenaEntry& entry) {
  return entry.shape.empty() ? std::vector<int64_t>{1} : entry.shape;
}

// Arenas run backwards, so the reverse names the model's first difference.
void CheckModel(const Hdf5Reader& in, const std::string& group, const ArenaLayout& layout) {
  std::vector<std::string> stored = in.DataSets(group);
  for (const ArenaEntry& entry : layout.entries | std::views::reverse) {
    const auto found = std::find(stored.begin(), stored.end(), entry.name);
    if (found == stored.end()) {
      ThrowMismatch(in, fmt::format("it lacks '{}' {}", entry.name, entry.shape));
    }
    stored.erase(found);
    const std::vector<int64_t> shape = in.ShapeOf(group + "/" + entry.name);
    if (shape == StoredShape(entry)) continue;
    ThrowMismatch(in, fmt::format("'{}' is {} there and {} here", entry.name, shape, entry.shape));
  }
  if (stored.empty()) return;
  ThrowMismatch(in, fmt::format("it has '{}' {}, which this model lacks", stored.front(),
                                in.ShapeOf(group + "/" + stored.front())));
}

std::vector<float> ReadArena(const Hdf5Reader& in, const std::string& group,
                             const ArenaLayout& layout) {
  std::vector<float> values(layout.size());
  for (const ArenaEntry& entry : layout.entries) {
    in.ReadFloats(group + "/" + entry.name, values.data() + entry.range.begin);
  }
  return values;
}

ArenaLayout StoredArena(const Hdf5Reader& in, const std::string& group) {
  ArenaLayout layout;
  for (const std::string& name : in.DataSets(group)) {
    ArenaEntry entry{name, in.ShapeOf(group + "/" + name), {layout.size(), layout.size()}};
    int64_t count = 1;
    for (const int64_t extent : entry.shape) count *= extent;
    entry.range.end += count;
    layout.entries.push_back(std::move(entry));
  }
  return layout;
}

Checkpoint ReadModel(const Hdf5Reader& in, const ModelLayout& layout) {
  Checkpoint checkpoint;
  checkpoint.info = ReadInfo(in);
  CheckVocabularies(in.path(), checkpoint.info, layout);
  CheckModel(in, "/model", layout.parameters);
  CheckModel(in, "/state", layout.state);
  checkpoint.weights = ReadArena(in, "/model", layout.parameters);
  checkpoint.state = ReadArena(in, "/state", layout.state);
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
  Hdf5Builder out;
  WriteArena(out, "/model", view.layout.parameters, view.weights);
  WriteArena(out, "/state", view.layout.state, view.state);
  for (const auto& [vector, values] : view.solver) {
    WriteArena(out, "/solver/" + vector, view.layout.parameters, values);
  }
  WriteInfo(out, view.info);
  WriteFileDurably(path, out.Finish());
}

Checkpoint ReadCheckpoint(const fs::path& path, const ModelLayout& layout) {
  const Hdf5Reader in(path);
  Checkpoint checkpoint = ReadModel(in, layout);
  if (checkpoint.info.plan_json.empty()) {
    throw CheckpointError(
        fmt::format("{} holds weights alone: there is no run to go on with", path.string()),
        "start a new run from them with --weights");
  }
  for (const std::string& vector : in.Children("/solver")) {
    const std::string group = "/solver/" + vector;
    CheckModel(in, group, layout.parameters);
    checkpoint.solver[vector] = ReadArena(in, group, layout.parameters);
  }
  return checkpoint;
}

CheckpointInfo ReadCheckpointInfo(const fs::path& path) { return ReadInfo(Hdf5Reader(path)); }

Checkpoint ReadWeights(const fs::path& path, const ModelLayout& layout) {
  return ReadModel(Hdf5Reader(path), layout);
}

ModelLayout ReadLayout(const fs::path& path) {
  const Hdf5Reader in(path);
  return {StoredArena(in, "/model"), StoredArena(in, "/state")};
}

}  // namespace dtrain
