// Reads record.bin of a run, with a valid hash around any content, and the event logs in it.
#include "framework/results/run_record.h"

#include "framework/core/bytes.h"
#include "framework/core/sha256.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kMostWorkers = 64;  // commands check this number before they read on

void Check(const RunRecord& record) {
  for (const std::string& log : record.logs) {
    for (const Event& event : EventLog::Read(log, "record")) {
      Require(event.actor >= 0, "an actor is negative");
      Require(event.kind != EventKind::kMessage || event.value >= 0, "a sender is negative");
    }
  }
  if (record.plan.workers <= kMostWorkers) RecordedStepSeconds(record);
}

// A record is written and read again.
void CheckAgain(const RunRecord& record) {
  const fs::path path = ScratchFolder() / "again.bin";
  WriteRecord(path, record);
  const RunRecord again = ReadAgain([&] { return ReadRecord(path); });
  Require(again.config_yaml == record.config_yaml && again.plan == record.plan &&
              again.logs == record.logs && again.node_of == record.node_of,
          "another record was read again");
}

// Returns the parts in the order of the file.  The number that should be a length may be wrong.
std::string PartsOf(InputReader& in) {
  static const std::string plan = ToJson(ExecutionPlan{});
  ByteWriter parts;
  parts.Text(in.Text());
  parts.Text(in.Text());
  const std::string_view given = in.LongText();
  parts.Text(given.empty() ? plan : given);
  parts.Value(in.Number());
  parts.Text(in.Text());
  parts.Text(in.Text());
  const uint64_t logs = in.Byte() % 4;
  parts.Value<uint64_t>(logs);
  for (uint64_t log = 0; log < logs; ++log) parts.Text(in.Text());
  return parts.Take() + std::string(in.Rest());
}

// The first byte chooses the version, and whether the rest is the file's bytes or parts to build it
// from.
bool Record(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  std::string file = "dtrain record " + std::string(1, static_cast<char>('0' + choice % 5)) + "\n";
  file += choice >= 128 ? std::string(in.Rest()) : PartsOf(in);
  const fs::path path = WriteScratch("record.bin", file + Sha256::Of(file));
  return Accepts(ExitCode::kCheckpoint, [&] {
    const RunRecord record = ReadRecord(path);
    CheckAgain(record);
    Check(record);
  });
}

DTRAIN_FUZZ_TARGET("run_record", Record);

}  // namespace
}  // namespace dtrain::fuzz
