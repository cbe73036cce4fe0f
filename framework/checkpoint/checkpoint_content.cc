#include "framework/checkpoint/stored_checkpoint.h"

#include <fmt/format.h>

#include <span>

#include "framework/core/check.h"
#include "framework/hdf5/hdf5_file.h"

namespace dtrain {
namespace {

constexpr char kRun[] = "/run";
constexpr char kLossScale[] = "/run/loss_scale";
constexpr char kModel[] = "/model";
constexpr char kState[] = "/state";
constexpr char kSolver[] = "/solver";
constexpr const char* kSplitHashes[] = {"/run/train_sha256", "/run/validation_sha256",
                                        "/run/test_sha256"};  // in the order of Split

// Each name ends with a zero byte, which no HDF5 name contains.
std::string ListOf(const ArenaLayout& layout) {
  std::string list;
  for (const ArenaEntry& entry : layout.entries) list += entry.name + '\0';
  return list;
}

std::vector<std::string> NamesIn(const std::string& list) {
  std::vector<std::string> names;
  for (size_t at = 0; at < list.size(); at += names.back().size() + 1) {
    names.push_back(list.substr(at, list.find('\0', at) - at));
  }
  return names;
}

void WriteArena(Hdf5Builder& out, const std::string& group, const ArenaLayout& layout,
                const float* values) {
  DT_CHECK(values != nullptr || layout.size() == 0) << group << " has a layout but no values";
  for (const ArenaEntry& entry : layout.entries) {
    out.WriteFloats(group + "/" + entry.name, entry.shape, values + entry.range.begin);
  }
}

void WriteInfo(Hdf5Builder& out, const CheckpointInfo& info) {
  out.SetAttribute(kRun, "format", static_cast<int64_t>(CheckpointFormat::kSealed));
  out.SetAttribute(kRun, "epoch", info.position.epoch);
  out.SetAttribute(kRun, "step", info.position.step);
  out.SetAttribute(kRun, "samples_applied", info.position.samples_applied);
  out.SetAttribute(kRun, "updates", info.position.updates);
  if (const LossScale& scale = info.position.loss_scale; scale != LossScale()) {
    out.SetAttribute(kLossScale, "factor", static_cast<int64_t>(scale.factor));
    out.SetAttribute(kLossScale, "steps", static_cast<int64_t>(scale.steps));
    out.SetAttribute(kLossScale, "skipped", static_cast<int64_t>(scale.skipped));
  }
  out.SetAttribute(kRun, "seed", static_cast<int64_t>(info.seed));
  out.SetAttribute(kRun, "model", info.model);
  out.SetAttribute(kRun, "solver", info.solver);
  out.SetAttribute(kRun, "source_revision", info.source_revision);
  out.WriteText("/run/config", info.config_yaml);
  out.WriteText("/run/plan", info.plan_json);
  if (!info.text.empty()) out.WriteText("/run/text", info.text);
  if (!info.images.empty()) out.WriteText("/run/images", info.images);
  if (!info.model_yaml.empty()) out.WriteText("/run/model_yaml", info.model_yaml);
  if (!info.so_far.empty()) out.WriteText("/run/so_far", info.so_far);
  const DataHashes& hashes = info.data_hashes;
  if (!hashes.all.empty()) out.WriteText("/run/data_sha256", hashes.all);
  for (size_t i = 0; i < hashes.splits.size(); ++i) {
    if (!hashes.splits[i].empty()) out.WriteText(kSplitHashes[i], hashes.splits[i]);
  }
  std::string rank_files;
  for (const std::string& hash : info.rank_files) rank_files += hash + '\0';
  if (!rank_files.empty()) out.WriteText("/run/rank_files", rank_files);
}

void CheckFormat(const Hdf5Reader& in, CheckpointFormat format) {
  const int64_t stored = in.IntAttribute(kRun, "format");
  const int64_t expected = static_cast<int64_t>(format);
  if (stored == expected) return;
  throw CheckpointError(
      fmt::format("cannot read {}: its format is {}, not {}", in.path().string(), stored, expected),
      format == CheckpointFormat::kWithoutSeal ? "it has lost its first 512 bytes"
                                               : "a newer program wrote it");
}

// Zeroed bytes have the checksum zero, so HDF5 takes them for undamaged.  No text that dtrain writes contains a zero
// byte.
std::string ReadPlainText(const Hdf5Reader& in, const std::string& name) {
  std::string text = in.ReadText(name);
  if (text.find('\0') == std::string::npos) return text;
  throw CheckpointError(fmt::format("cannot read {}: {} holds zeros", in.path().string(), name));
}

CheckpointInfo ReadInfo(const Hdf5Reader& in) {
  CheckpointInfo info;
  info.position.epoch = in.IntAttribute(kRun, "epoch");
  info.position.step = in.IntAttribute(kRun, "step");
  info.position.samples_applied = in.IntAttribute(kRun, "samples_applied");
  info.position.updates = in.IntAttribute(kRun, "updates");
  if (in.Has(kLossScale)) {
    info.position.loss_scale = {
        .factor = static_cast<float>(in.IntAttribute(kLossScale, "factor")),
        .steps = static_cast<unsigned long long>(in.IntAttribute(kLossScale, "steps")),
        .skipped = static_cast<unsigned long long>(in.IntAttribute(kLossScale, "skipped"))};
  }
  info.seed = static_cast<uint64_t>(in.IntAttribute(kRun, "seed"));
  info.model = in.TextAttribute(kRun, "model");
  info.solver = in.TextAttribute(kRun, "solver");
  info.source_revision = in.TextAttribute(kRun, "source_revision");
  info.config_yaml = ReadPlainText(in, "/run/config");
  info.plan_json = ReadPlainText(in, "/run/plan");
  if (in.Has("/run/text")) info.text = ReadPlainText(in, "/run/text");
  if (in.Has("/run/images")) info.images = ReadPlainText(in, "/run/images");
  if (in.Has("/run/model_yaml")) info.model_yaml = ReadPlainText(in, "/run/model_yaml");
  if (in.Has("/run/so_far")) info.so_far = ReadPlainText(in, "/run/so_far");
  DataHashes& hashes = info.data_hashes;
  if (in.Has("/run/data_sha256")) hashes.all = ReadPlainText(in, "/run/data_sha256");
  for (size_t i = 0; i < hashes.splits.size(); ++i) {
    if (in.Has(kSplitHashes[i])) hashes.splits[i] = ReadPlainText(in, kSplitHashes[i]);
  }
  if (in.Has("/run/rank_files")) info.rank_files = NamesIn(in.ReadText("/run/rank_files"));
  return info;
}

ArenaLayout LayoutOf(const Hdf5Reader& in, const std::string& group,
                     const std::vector<std::string>& names) {
  ArenaLayout layout;
  for (const std::string& name : names) {
    ArenaEntry entry{name, in.ShapeOf(group + "/" + name), {layout.size(), layout.size()}};
    int64_t count = 1;
    for (const int64_t extent : entry.shape) {
      if (extent >= 0 && !__builtin_mul_overflow(count, extent, &count)) continue;
      throw CheckpointError(
          fmt::format("cannot read {}: {}/{} is too large", in.path().string(), group, name));
    }
    constexpr int64_t kNumberBytes = sizeof(float);
    if (count > in.file_bytes() / kNumberBytes - layout.size()) {
      throw CheckpointError(fmt::format("cannot read {}: {}/{} is larger than the file",
                                        in.path().string(), group, name));
    }
    entry.range.end += count;
    layout.entries.push_back(std::move(entry));
  }
  return layout;
}

std::vector<float> ReadArena(const Hdf5Reader& in, const std::string& group,
                             const ArenaLayout& layout) {
  std::vector<float> values(static_cast<size_t>(layout.size()));
  for (const ArenaEntry& entry : layout.entries) {
    in.ReadFloats(group + "/" + entry.name,
                  std::span(values).subspan(static_cast<size_t>(entry.range.begin),
                                            static_cast<size_t>(entry.range.size())));
  }
  return values;
}

struct Names {
  std::vector<std::string> parameters, state, solver;
};

Names NamesOf(const Hdf5Reader& in, CheckpointFormat format) {
  if (format == CheckpointFormat::kWithoutSeal) {
    return {in.DataSets(kModel), in.DataSets(kState), in.Children(kSolver)};
  }
  return {NamesIn(in.ReadText("/run/parameters")), NamesIn(in.ReadText("/run/state")),
          NamesIn(in.ReadText("/run/solver_vectors"))};
}

}  // namespace

void WriteContent(Hdf5Builder& out, const CheckpointView& view) {
  WriteArena(out, kModel, view.layout.parameters, view.weights);
  WriteArena(out, kState, view.layout.state, view.state);
  std::string vectors;
  for (const auto& [vector, values] : view.solver) {
    WriteArena(out, std::string(kSolver) + "/" + vector, view.layout.parameters, values);
    vectors += vector + '\0';
  }
  WriteInfo(out, view.info);
  out.WriteText("/run/parameters", ListOf(view.layout.parameters));
  out.WriteText("/run/state", ListOf(view.layout.state));
  out.WriteText("/run/solver_vectors", vectors);
}

StoredCheckpoint ReadContent(const Hdf5Reader& in, CheckpointFormat format, CheckpointPart part) {
  CheckFormat(in, format);
  StoredCheckpoint stored;
  stored.info = ReadInfo(in);
  if (part == CheckpointPart::kInfo) return stored;
  const Names names = NamesOf(in, format);
  stored.layout.parameters = LayoutOf(in, kModel, names.parameters);
  stored.layout.state = LayoutOf(in, kState, names.state);
  stored.weights = ReadArena(in, kModel, stored.layout.parameters);
  stored.state = ReadArena(in, kState, stored.layout.state);
  if (part == CheckpointPart::kModel) return stored;
  for (const std::string& vector : names.solver) {
    stored.solver[vector] =
        ReadArena(in, std::string(kSolver) + "/" + vector, stored.layout.parameters);
  }
  return stored;
}

}  // namespace dtrain
