#include "framework/results/run_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "framework/core/bytes.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

// The version of the event logs, one digit, and a newline follow.
constexpr std::string_view kMagic = "dtrain record ";
static_assert(EventLog::kVersion < 10);
constexpr size_t kHashBytes = 64;

ExecutionPlan PlanOf(const std::string& json, const std::string& source) {
  try {
    return PlanFromJson(json, source);
  } catch (const ConfigError& error) {
    throw RunFileError(error.what(), error.hint());
  }
}

}  // namespace

std::vector<std::vector<double>> RecordedStepSeconds(const RunRecord& record) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(record.plan.workers));
  for (const std::string& log : record.logs) {
    for (const Event& event : EventLog::Read(log, "record")) {
      if (event.kind != EventKind::kEnd) continue;
      if (event.actor >= record.plan.workers) {
        throw RunFileError(fmt::format("the record tells of worker {}, the run had {}", event.actor,
                                       record.plan.workers));
      }
      seconds[event.actor].push_back(ToSeconds(event.value));
    }
  }
  return seconds;
}

void WriteRecord(const std::filesystem::path& path, const RunRecord& record) {
  std::string bytes =
      fmt::format("{}{}\n", kMagic, EventLog::kVersion) +
      ToBytes(record.config_yaml, record.model_yaml, ToJson(record.plan), record.first_step,
              record.weights, record.weights_sha256, record.logs, record.node_of);
  bytes += Sha256::Of(bytes);
  WriteFileDurably(path, bytes);
}

RunRecord ReadRecord(const std::filesystem::path& path) {
  const std::string bytes = ReadFile(path);
  const size_t begin = kMagic.size() + 2;
  if (!bytes.starts_with(kMagic) || bytes.size() < begin || bytes[begin - 1] != '\n') {
    throw RunFileError(path.string() + ": not a record of a run",
                       "give the record.bin of a run with strategy.record: true");
  }
  if (bytes[kMagic.size()] - '0' != EventLog::kVersion) {
    throw RunFileError(fmt::format("{}: a record of version {}, this program reads version {}",
                                   path.string(), bytes[kMagic.size()], EventLog::kVersion),
                       "replay it with the program that wrote it");
  }
  const size_t end = bytes.size() - std::min(bytes.size(), kHashBytes);
  const std::string_view content = std::string_view(bytes).substr(0, end);
  if (end < begin || Sha256::Of(content) != bytes.substr(end)) {
    throw RunFileError(path.string() + ": the record is cut short or damaged",
                       "copy it again from where it was written");
  }
  ByteReader reader(content.substr(begin), path.string());
  RunRecord record;
  std::string plan;
  reader(record.config_yaml, record.model_yaml, plan, record.first_step, record.weights,
         record.weights_sha256, record.logs, record.node_of);
  record.plan = PlanOf(plan, path.string());
  return record;
}

bool IsRecordFile(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  std::string begin(kMagic.size(), '\0');
  std::ifstream in(path, std::ios::binary);
  return in.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kMagic;
}

}  // namespace dtrain
