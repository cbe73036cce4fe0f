#include "framework/study/study_records.h"

#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace fs = std::filesystem;

StudyRecords::StudyRecords(fs::path file) : file_(std::move(file)) {
  if (!fs::exists(file_)) return;
  std::ifstream in(file_, std::ios::binary);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::optional<JobRecord> record = JobRecord::FromLine(line);
    if (!record) {
      throw UsageError(fmt::format("{}:{}: no study has written this line", file_.string(), number),
                       "choose another --output, or restore the file");
    }
    Add(*std::move(record));
  }
}

const JobRecord* StudyRecords::Find(const std::string& id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second;
}

void StudyRecords::Add(JobRecord record) { records_[record.id] = std::move(record); }

void StudyRecords::Write(const std::vector<std::string>& ids) const {
  std::string lines;
  std::set<std::string> written;
  for (const std::string& id : ids) {
    const JobRecord* const record = Find(id);
    if (record != nullptr && written.insert(id).second) lines += record->ToLine() + "\n";
  }
  for (const auto& [id, record] : records_) {
    if (!written.contains(id)) lines += record.ToLine() + "\n";
  }
  WriteFileDurably(file_, lines);
}

size_t StudyRecords::OthersThan(const std::vector<std::string>& ids) const {
  const std::set<std::string> own(ids.begin(), ids.end());
  size_t others = 0;
  for (const auto& [id, record] : records_) others += own.contains(id) ? 0 : 1;
  return others;
}

}  // namespace dtrain
