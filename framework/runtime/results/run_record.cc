#include "framework/runtime/results/run_record.h"

#include "framework/core/bytes.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

constexpr std::string_view kMagic = "dtrain record 1\n";
constexpr size_t kHashBytes = 64;

}  // namespace

std::vector<std::vector<double>> RecordedStepSeconds(const RunRecord& record) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(record.plan.workers));
  for (const std::string& log : record.logs) {
    for (const Event& event : EventLog::Read(log, "record")) {
      if (event.kind == EventKind::kEnd) seconds[event.actor].push_back(ToSeconds(event.value));
    }
  }
  return seconds;
}

void WriteRecord(const std::filesystem::path& path, const RunRecord& record) {
  ByteWriter writer;
  writer.Text(record.config_yaml);
  writer.Text(record.model_yaml);
  writer.Text(ToJson(record.plan));
  writer.Value(record.first_step);
  writer.Text(record.weights);
  writer.Text(record.weights_sha256);
  writer.Value<uint64_t>(record.logs.size());
  for (const std::string& log : record.logs) writer.Text(log);
  std::string bytes = std::string(kMagic) + writer.Take();
  bytes += Sha256::Of(bytes);
  WriteFileDurably(path, bytes);
}

RunRecord ReadRecord(const std::filesystem::path& path) {
  const std::string bytes = ReadFile(path);
  if (!bytes.starts_with(kMagic)) {
    throw CheckpointError(path.string() + ": not a record of a run",
                          "give the record.bin of a run with strategy.record: true");
  }
  const size_t end = bytes.size() - std::min(bytes.size(), kHashBytes);
  const std::string_view content = std::string_view(bytes).substr(0, end);
  if (end < kMagic.size() || Sha256::Of(content) != bytes.substr(end)) {
    throw CheckpointError(path.string() + ": the record is cut short or damaged",
                          "copy it again from where it was written");
  }
  ByteReader reader(content.substr(kMagic.size()));
  RunRecord record;
  record.config_yaml = reader.Text();
  record.model_yaml = reader.Text();
  record.plan = PlanFromJson(reader.Text(), path.string());
  record.first_step = reader.Value<int64_t>();
  record.weights = reader.Text();
  record.weights_sha256 = reader.Text();
  for (uint64_t left = reader.Value<uint64_t>(); left > 0; --left)
    record.logs.push_back(reader.Text());
  return record;
}

}  // namespace dtrain
