#include "framework/results/run_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/timeline_file.h"
#include "framework/results/run_files.h"
#include "framework/results/run_record.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

bool HasCheckpoints(const RunFolder& folder) {
  return !CheckpointFolder(folder.checkpoints(), 1).List().empty();
}

bool SaysSchema(const fs::path& file) {
  const std::optional<nlohmann::json> json = ReadJsonObject(file);
  return json && json->contains("schema");
}

// True if a run has begun in the folder and not completed.  The folder may also have the summary of an earlier,
// completed run.
bool IsUnfinished(const RunFolder& folder) {
  std::error_code error;
  if (!SaysSchema(folder.plan())) return false;
  const std::optional<nlohmann::json> summary = ReadJsonObject(folder.summary());
  if (!summary || TextIn(*summary, "status") != "completed") return true;
  return fs::last_write_time(folder.plan(), error) > fs::last_write_time(folder.summary(), error);
}

// A run that was killed before its first checkpoint starts from the beginning when it is resumed, and replaces its own
// best weights.
void RefuseCheckpoints(const RunFolder& folder, bool resuming) {
  if (HasCheckpoints(folder)) {
    if (resuming) return;
    throw UsageError(
        fmt::format("{} holds the checkpoints of an earlier run", folder.path().string()),
        "continue it with --resume auto, or choose another --output");
  }
  std::error_code error;
  const fs::path best = folder.checkpoints() / kBestName;
  if (!fs::exists(best, error) || (resuming && IsUnfinished(folder))) return;
  throw UsageError(fmt::format("{} holds the best weights of an earlier run", best.string()),
                   "move it away, or choose another --output");
}

// True also for an empty file, for a file whose content was lost in a power failure (all zeros), and for anything that
// is no regular file: the code that opens that for writing refuses it.
bool LinesSaySchema(const fs::path& file) {
  if (!fs::is_regular_file(file)) return true;
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  if (line.find_first_not_of('\0') == std::string::npos) return true;
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("schema");
}

// Returns errors/rank-N.json for every N.
std::vector<fs::path> ErrorsIn(const RunFolder& folder) {
  constexpr std::string_view kBegin = "rank-";
  std::vector<fs::path> errors;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder.error(0).parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    int rank = -1;
    if (!name.starts_with(kBegin)) continue;
    std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), rank);
    if (entry.path() == folder.error(rank)) errors.push_back(entry.path());
  }
  return errors;
}

// True if the file names a run's newest checkpoint.
bool NamesCheckpoint(const fs::path& latest) {
  return fs::is_regular_file(latest) && ReadFile(latest).starts_with("step-");
}

// Returns the first file that this run would overwrite and that no run has written; "" if there is none.  A folder is
// recognised as a run's by its checkpoints, its plan or its summary, all of which a run writes before its config.yaml.
// In a run's folder the .jsonl files are not checked: they are not synced to the disk, so the run's own ones may be
// damaged.
fs::path FindFileOfOthers(const RunFolder& folder) {
  struct Kind {
    fs::path file;
    bool (*is_ours)(const fs::path&);
  };
  const bool has_checkpoints = HasCheckpoints(folder);
  const bool is_run = has_checkpoints || SaysSchema(folder.plan()) || SaysSchema(folder.summary());
  std::vector<Kind> kinds = {{folder.profile(), SaysSchema},
                             {folder.timeline(), IsTimelineFile},
                             {folder.record(), IsRecordFile}};
  for (const fs::path& file : ErrorsIn(folder)) kinds.push_back({file, SaysSchema});
  if (!has_checkpoints) {
    kinds.push_back({folder.plan(), SaysSchema});
    kinds.push_back({folder.summary(), SaysSchema});
    kinds.push_back({folder.checkpoints() / "latest", NamesCheckpoint});
  }
  if (!is_run) {
    kinds.push_back({folder.config(), [](const fs::path&) { return false; }});
    for (const fs::path& lines : {folder.metrics(), folder.ranks(), folder.gradients()}) {
      kinds.push_back({lines, LinesSaySchema});
    }
  }
  std::error_code error;
  for (const auto& [file, is_ours] : kinds) {
    if (fs::exists(file, error) && !is_ours(file)) return file;
  }
  return {};
}

void RefuseFilesOfOthers(const RunFolder& folder) {
  const fs::path file = FindFileOfOthers(folder);
  if (file.empty()) return;
  const std::string foreign = fmt::format(
      "{} was not written by a run, and one with this output would write over it", file.string());
  throw UsageError(fs::is_regular_file(file) ? foreign : WhyNoFile(file, foreign),
                   "choose another --output");
}

}  // namespace

std::string ToJson(const ErrorRecord& record) {
  const nlohmann::ordered_json json = {
      {"schema", 1},         {"rank", record.rank},           {"host", record.host},
      {"pid", record.pid},   {"exit_code", record.exit_code}, {"epoch", record.epoch},
      {"step", record.step}, {"what", record.what},           {"hint", record.hint}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

RunLock RunFolder::Create(bool resuming) const {
  std::error_code ignored;
  const bool is_new = !fs::exists(path_, ignored);
  MakeFolder(path_);
  RunLock lock(path_);
  if (is_new) lock.MadeFolder();
  RefuseFilesOfOthers(*this);
  RefuseCheckpoints(*this, resuming);
  return lock;
}

void RunFolder::CheckFree(bool resuming) const {
  std::error_code ignored;
  fs::path existing = fs::absolute(path_);
  while (!fs::exists(existing, ignored) && existing != existing.parent_path())
    existing = existing.parent_path();
  MakeFolder(existing);  // already exists: checks only that it is a writable folder
  RefuseRunThatGoesOn(path_);
  RefuseFilesOfOthers(*this);
  RefuseCheckpoints(*this, resuming);
}

fs::path RunFolder::error(int rank) const {
  return path_ / "errors" / fmt::format("rank-{}.json", rank);
}

void RunFolder::WriteConfig(const std::string& yaml) const { WriteFileDurably(config(), yaml); }

void RunFolder::WritePlan(const ExecutionPlan& plan) const {
  WriteFileDurably(this->plan(), ToJson(plan));
}

void RunFolder::WriteProfile(const ModelProfile& profile) const {
  WriteFileDurably(this->profile(), ToJson(profile));
}

void RunFolder::WriteSummary(const Summary& summary) const {
  WriteFileDurably(this->summary(), ToJson(summary));
}

void RunFolder::WriteError(const ErrorRecord& record) const {
  MakeFolder(path_ / "errors");
  WriteFileDurably(error(record.rank), ToJson(record));
}

}  // namespace dtrain
