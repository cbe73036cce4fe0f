#include "framework/runtime/results/run_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/runtime/results/run_files.h"
#include "framework/runtime/weights/checkpoint_folder.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

void RefuseCheckpoints(const RunFolder& folder) {
  if (CheckpointFolder(folder.checkpoints(), 1).List().empty()) return;
  throw UsageError(
      fmt::format("{} holds the checkpoints of an earlier run", folder.path().string()),
      "continue it with --resume auto, or choose another --output");
}

bool SaysSchema(const fs::path& file) {
  const std::optional<nlohmann::json> json = ReadJsonObject(file);
  return json && json->contains("schema");
}

// Also true of an empty file.
bool LinesSaySchema(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return true;
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("schema");
}

// The first file that a run here would write over, and that no run has written; "" for none.  A run has its plan or its
// summary before its config.yaml.
fs::path FindFileOfOthers(const RunFolder& folder) {
  std::error_code error;
  if (!CheckpointFolder(folder.checkpoints(), 1).List().empty()) return {};
  const bool is_run = SaysSchema(folder.plan()) || SaysSchema(folder.summary());
  if (!is_run && fs::exists(folder.config(), error)) return folder.config();
  for (const fs::path& file : {folder.plan(), folder.summary()}) {
    if (fs::exists(file, error) && !SaysSchema(file)) return file;
  }
  for (const fs::path& file : {folder.metrics(), folder.ranks(), folder.gradients()}) {
    if (fs::is_regular_file(file, error) && !LinesSaySchema(file)) return file;
  }
  return {};
}

void RefuseFilesOfOthers(const RunFolder& folder) {
  const fs::path file = FindFileOfOthers(folder);
  if (file.empty()) return;
  throw UsageError(fmt::format("{} was not written by a run, and one with this output would write "
                               "over it",
                               file.string()),
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
  if (!resuming) RefuseCheckpoints(*this);
  return lock;
}

void RunFolder::CheckFree(bool resuming) const {
  std::error_code ignored;
  fs::path there = fs::absolute(path_);
  while (!fs::exists(there, ignored) && there != there.parent_path()) there = there.parent_path();
  MakeFolder(there);  // which is there: only whether it is a folder to write into
  RefuseRunThatGoesOn(path_);
  RefuseFilesOfOthers(*this);
  if (!resuming) RefuseCheckpoints(*this);
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
