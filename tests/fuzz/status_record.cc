// Reads the records by which ranks report their progress to their supervisor.
#include "framework/launch/status_record.h"

#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

fs::path Folder() {
  fs::path folder = ScratchFolder() / "status";
  fs::create_directories(folder);
  return folder;
}

// The input gives two records of one folder; invalid records are skipped.
bool Status(std::string_view input) {
  static const fs::path folder = Folder();
  WriteScratch("status/rank-0", input.substr(0, input.size() / 2));
  WriteScratch("status/rank-1", input.substr(input.size() / 2));
  const std::vector<RankStatus> records = ReadStatusRecords(folder);
  Require(records.size() <= 2, "there are more records than files");
  for (const RankStatus& record : records) {
    NameOf(record.doing);
    Require(record.host.size() <= 64 && record.message.size() <= 500, "a text is too long");
    Require(record.exit_code.has_value() || record.message.empty(), "a message without an end");
  }
  SlowestRank(records);
  return !records.empty();
}

DTRAIN_FUZZ_TARGET("status_record", Status);

}  // namespace
}  // namespace dtrain::fuzz
