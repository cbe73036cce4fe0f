#include "framework/checkpoint/weights_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <ranges>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/safetensors.h"
#include "framework/checkpoint/weights_compare.h"
#include "framework/core/log.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr char kMean[] = ".running_mean";
constexpr char kVariance[] = ".running_var";
constexpr char kCount[] = ".num_batches_tracked";
constexpr char kWeightsSha256[] = "weights_sha256";

bool IsState(const std::string& name) { return name.ends_with(kMean) || name.ends_with(kVariance); }

void Append(ArenaLayout& layout, const SafeTensorEntry& entry) {
  layout.entries.push_back(
      {entry.name, entry.shape, {layout.size(), layout.size() + entry.count()}});
}

std::string TextIn(const std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto it = metadata.find(key);
  return it == metadata.end() ? "" : it->second;
}

int64_t NumberIn(const std::map<std::string, std::string>& metadata, const std::string& key) {
  int64_t number = 0;
  const std::string text = TextIn(metadata, key);
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

CheckpointInfo InfoOf(const std::map<std::string, std::string>& metadata) {
  CheckpointInfo info;
  info.model = TextIn(metadata, "model");
  info.source_revision = TextIn(metadata, "source_revision");
  info.text = TextIn(metadata, "text");
  info.images = TextIn(metadata, "images");
  info.model_yaml = TextIn(metadata, "model_yaml");
  info.position = {NumberIn(metadata, "epoch"), NumberIn(metadata, "step"),
                   NumberIn(metadata, "samples_applied")};
  return info;
}

std::map<std::string, std::string> MetadataOf(const CheckpointInfo& info) {
  std::map<std::string, std::string> metadata = {
      {"format", "pt"},  // other readers of the format look for this
      {"model", info.model},
      {"source_revision", info.source_revision},
      {"epoch", std::to_string(info.position.epoch)},
      {"step", std::to_string(info.position.step)},
      {"samples_applied", std::to_string(info.position.samples_applied)}};
  if (!info.text.empty()) metadata["text"] = info.text;
  if (!info.images.empty()) metadata["images"] = info.images;
  if (!info.model_yaml.empty()) metadata["model_yaml"] = info.model_yaml;
  return metadata;
}

std::vector<float> ReadArena(const SafetensorsReader& in, const ArenaLayout& layout) {
  std::vector<float> arena(static_cast<size_t>(layout.size()));
  for (const ArenaEntry& entry : layout.entries) {
    in.ReadFloats(*in.Find(entry.name), arena.data() + entry.range.begin);
  }
  return arena;
}

StoredWeights StoredIn(const SafetensorsReader& in) {
  StoredWeights stored;
  stored.format = WeightsFormat::kSafetensors;
  stored.info = InfoOf(in.metadata());
  for (const SafeTensorEntry& entry : in.entries()) {
    if (entry.name.ends_with(kCount)) continue;
    Append(IsState(entry.name) ? stored.layout.state : stored.layout.parameters, entry);
  }
  stored.weights = ReadArena(in, stored.layout.parameters);
  stored.state = ReadArena(in, stored.layout.state);
  return stored;
}

std::string HashOf(const StoredWeights& stored) {
  return WeightsSha256(stored.layout, stored.weights.data(), stored.state.data());
}

// A file must have both hashes or none: if only one is present, the name of the other may be damaged.
void CheckHashes(const SafetensorsReader& in) {
  const bool of_weights = in.metadata().contains(kWeightsSha256);
  if (of_weights != in.metadata().contains(kFileSha256)) {
    in.ThrowDamaged(fmt::format("its metadata has {} without {}",
                                of_weights ? kWeightsSha256 : kFileSha256,
                                of_weights ? kFileSha256 : kWeightsSha256));
  }
  if (!of_weights) return;
  const std::string given = in.metadata().at(kWeightsSha256), expected = HashOf(StoredIn(in));
  if (given == expected) return;
  in.ThrowDamaged(
      fmt::format("its {} is {:?}, its weights have {:?}", kWeightsSha256, given, expected));
}

SafetensorsReader OpenSafetensors(const fs::path& path) {
  SafetensorsReader in(path);
  CheckHashes(in);
  return in;
}

// A module of PyTorch that contains the model; the names of its parameters begin with the attribute that has the model.
struct Wrapper {
  const char* prefix;
  const char* name;
};
constexpr Wrapper kWrappers[] = {{"module.", "DistributedDataParallel"},
                                 {"_orig_mod.", "torch.compile"}};

bool AllBeginWith(const SafetensorsReader& in, const std::string& prefix) {
  return !in.entries().empty() && std::ranges::all_of(in.entries(), [&](const auto& entry) {
    return entry.name.size() > prefix.size() && entry.name.starts_with(prefix);
  });
}

// Returns the names of the wrappers whose prefixes all names of the file begin with, and appends these to `prefix`.
std::vector<std::string> WrappersOf(const SafetensorsReader& in, std::string& prefix) {
  std::vector<std::string> wrappers;
  for (bool found = true; found;) {
    found = false;
    for (const Wrapper& wrapper : kWrappers) {
      if (!AllBeginWith(in, prefix + wrapper.prefix)) continue;
      prefix += wrapper.prefix;
      wrappers.emplace_back(wrapper.name);
      found = true;
    }
  }
  return wrappers;
}

// True if the model has a name of the file, so that its prefix belongs to the model.
bool HasAnyName(const ModelLayout& layout, const SafetensorsReader& in) {
  const auto is_in_file = [&](const ArenaEntry& entry) { return in.Find(entry.name) != nullptr; };
  return std::ranges::any_of(layout.parameters.entries, is_in_file) ||
         std::ranges::any_of(layout.state.entries, is_in_file);
}

// Opens a file for reading its weights, by the names that they have without PyTorch's wrappers.  Without a layout, the
// names in a file of dtrain are those of its model.
SafetensorsReader OpenTensors(const fs::path& path, const ModelLayout* layout) {
  SafetensorsReader in = OpenSafetensors(path);
  std::string prefix;
  const std::vector<std::string> wrappers = WrappersOf(in, prefix);
  const bool of_model =
      layout != nullptr ? HasAnyName(*layout, in) : in.metadata().contains(kWeightsSha256);
  if (wrappers.empty() || of_model) return in;
  in.DropPrefix(prefix);
  if (log::IsFirstRank()) {
    log::Info("{}: all names begin with '{}' ({}); they are read without it", path.string(), prefix,
              fmt::join(wrappers, ", "));
  }
  return in;
}

void Collect(const ArenaLayout& layout, const std::vector<float>& arena,
             std::vector<SafeTensorSource>& tensors) {
  for (const ArenaEntry& entry : layout.entries) {
    tensors.push_back({entry.name, "F32", entry.shape, arena.data() + entry.range.begin});
  }
}

void WriteAsSafetensors(const fs::path& path, const StoredWeights& stored) {
  std::vector<SafeTensorSource> tensors;
  Collect(stored.layout.parameters, stored.weights, tensors);
  Collect(stored.layout.state, stored.state, tensors);
  for (const ArenaEntry& entry : stored.layout.state.entries) {
    if (!entry.name.ends_with(kMean)) continue;
    const std::string layer = entry.name.substr(0, entry.name.size() - std::size(kMean) + 1);
    tensors.push_back({layer + kCount, "I64", {}, &stored.info.position.step});
  }
  std::map<std::string, std::string> metadata = MetadataOf(stored.info);
  metadata[kWeightsSha256] = HashOf(stored);
  metadata[kFileSha256] = "";  // set by WriteSafetensors
  WriteSafetensors(path, std::move(tensors), std::move(metadata));
}

// Finds the differences between a file and a model, one a line.
class Fit {
 public:
  Fit(const SafetensorsReader& in, const ModelLayout& layout) : in_(in) {
    // Arenas are in reverse order of the layers; going backwards gives the order of the model.
    for (const ArenaEntry& e : layout.parameters.entries | std::views::reverse) Want(e);
    for (const ArenaEntry& e : layout.state.entries | std::views::reverse) Want(e);
    for (const SafeTensorEntry& entry : in.entries()) {
      const bool wanted = std::find(wanted_.begin(), wanted_.end(), entry.name) != wanted_.end();
      if (!wanted && !entry.name.ends_with(kCount)) Unexpected(entry);
    }
  }

  const std::string& differences() const { return differences_; }

 private:
  void Want(const ArenaEntry& entry) {
    wanted_.push_back(entry.name);
    const SafeTensorEntry* found = in_.Find(entry.name);
    if (found == nullptr) {
      missing_.push_back(entry.name);
      differences_ += fmt::format("\n  it lacks '{}' {}", entry.name, entry.shape);
    } else if (found->shape != entry.shape) {
      differences_ +=
          fmt::format("\n  '{}' is {} there and {} here", entry.name, found->shape, entry.shape);
    }
  }

  void Unexpected(const SafeTensorEntry& entry) {
    differences_ +=
        fmt::format("\n  it has '{}' {}, which this model lacks", entry.name, entry.shape);
    const std::string nearest = NearestName(entry.name, missing_);
    if (!nearest.empty()) differences_ += fmt::format("; did you mean '{}'?", nearest);
  }

  const SafetensorsReader& in_;
  std::vector<std::string> wanted_, missing_;
  std::string differences_;
};

Checkpoint LoadSafetensors(const fs::path& path, const ModelLayout& layout) {
  const SafetensorsReader in = OpenTensors(path, &layout);
  const std::string differences = Fit(in, layout).differences();
  if (!differences.empty()) {
    throw CheckpointMismatch(
        fmt::format("weights {} are of another model:{}", path.string(), differences),
        "names and shapes are those of state_dict() of the PyTorch model that the model file "
        "names; to start a layer with random weights, name it in weights.except");
  }
  Checkpoint checkpoint;
  checkpoint.info = InfoOf(in.metadata());
  if (!checkpoint.info.text.empty()) CheckVocabularies(path, checkpoint.info, layout);
  checkpoint.weights = ReadArena(in, layout.parameters);
  checkpoint.state = ReadArena(in, layout.state);
  return checkpoint;
}

// True for a zip archive or a pickle, the formats of torch.save since and before 2020.  A pickle is a program, which
// dtrain does not execute.
bool LooksLikeTorch(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string start(4, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == "PK\x03\x04" || start.starts_with("\x80\x02");
}

// Returns false for an HDF5 file.  Throws for a file of torch.save.
bool IsSafetensors(const fs::path& path) {
  if (LooksLikeSafetensors(path)) return true;
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && LooksLikeTorch(path)) {
    fs::path converted = path;
    converted.replace_extension(".safetensors");
    throw CheckpointError(
        fmt::format("{} was written by torch.save, which dtrain does not read", path.string()),
        fmt::format(
            "convert it: python3 -c \"import sys, torch; from safetensors.torch import save_file; "
            "s = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
            "save_file({{k: v.contiguous().clone() for k, v in s.get('state_dict', s).items()}}, "
            "sys.argv[2])\" {} {}",
            ShellWord(path.string()), ShellWord(converted.string())));
  }
  return false;
}

StoredWeights ReadStored(const fs::path& path, CheckpointPart part, const ModelLayout* layout) {
  if (IsSafetensors(path)) return StoredIn(OpenTensors(path, layout));
  return {ReadStoredCheckpoint(path, part), WeightsFormat::kHdf5};
}

}  // namespace

std::string NameOf(WeightsFormat format) {
  return format == WeightsFormat::kHdf5 ? "hdf5" : "safetensors";
}

CheckpointInfo ReadStoredInfo(const fs::path& path) {
  if (!IsSafetensors(path)) return ReadStoredCheckpoint(path, CheckpointPart::kInfo).info;
  return InfoOf(OpenSafetensors(path).metadata());
}

StoredWeights ReadStoredWeights(const fs::path& path, CheckpointPart part) {
  return ReadStored(path, part, nullptr);
}

void WriteStoredWeights(const fs::path& path, WeightsFormat format, const StoredWeights& stored) {
  if (format == WeightsFormat::kSafetensors) return WriteAsSafetensors(path, stored);
  CheckpointInfo info = stored.info;
  info.plan_json.clear();  // tells ReadCheckpoint that this is no state of a run
  info.rank_files.clear();
  WriteCheckpoint(path, {info, stored.layout, stored.weights.data(), {}, stored.state.data()});
}

Checkpoint LoadWeights(const fs::path& path, const ModelLayout& layout) {
  Checkpoint loaded =
      IsSafetensors(path) ? LoadSafetensors(path, layout) : ReadWeights(path, layout);
  const int64_t bad = CountNonFinite(loaded.weights) + CountNonFinite(loaded.state);
  if (bad == 0) return loaded;
  throw CheckpointError(
      fmt::format("{}: {} of its weights are NaN or infinite", path.string(), bad),
      "the run that wrote it has diverged: take an earlier checkpoint, or train with a lower "
      "learning rate");
}

int64_t CopyWeights(const fs::path& path, const ModelLayout& layout,
                    const std::vector<std::string>& except, float* weights, float* state) {
  const StoredWeights stored = ReadStored(path, CheckpointPart::kModel, &layout);
  if (!stored.info.text.empty()) CheckVocabularies(path, stored.info, layout);
  const auto left_out = [&](const std::string& name) {
    const std::string layer = name.substr(0, name.rfind('.'));
    return std::ranges::any_of(except, [&](auto& pattern) { return NameMatches(pattern, layer); });
  };
  std::string differences;
  int64_t left = 0;
  const auto copy = [&](const ArenaLayout& from, const std::vector<float>& values,
                        const ArenaLayout& to, float* arena) {
    const auto find = [](const ArenaLayout& in, const std::string& name) {
      return std::ranges::find(in.entries, name, &ArenaEntry::name);
    };
    for (const ArenaEntry& entry : to.entries | std::views::reverse) {
      if (left_out(entry.name)) {
        left += entry.range.size();
        continue;
      }
      const auto found = find(from, entry.name);
      if (found == from.entries.end()) {
        differences += fmt::format("\n  it lacks '{}' {}", entry.name, entry.shape);
      } else if (found->shape != entry.shape &&
                 !(entry.shape.empty() && found->range.size() == 1)) {
        differences +=
            fmt::format("\n  '{}' is {} there and {} here", entry.name, found->shape, entry.shape);
      } else {
        std::copy_n(values.begin() + found->range.begin, entry.range.size(),
                    arena + entry.range.begin);
      }
    }
    for (const ArenaEntry& entry : from.entries | std::views::reverse) {
      if (left_out(entry.name) || find(to, entry.name) != to.entries.end()) continue;
      differences +=
          fmt::format("\n  it has '{}' {}, which this model lacks", entry.name, entry.shape);
    }
  };
  copy(stored.layout.parameters, stored.weights, layout.parameters, weights);
  copy(stored.layout.state, stored.state, layout.state, state);
  if (differences.empty()) return left;
  throw CheckpointMismatch(
      fmt::format("weights {} are of another model:{}", path.string(), differences),
      "name these layers in weights.except, too, or use the model that wrote the weights");
}

}  // namespace dtrain
