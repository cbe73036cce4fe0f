// StudyRecords: the finished runs of a study, kept in jobs.jsonl.  A study that is run again goes on from them, also
// where the run folders are gone.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/study/job_record.h"

namespace dtrain {

class StudyRecords {
 public:
  // Reads the file, if it exists.  Throws UsageError if it holds anything that no study has written.
  explicit StudyRecords(std::filesystem::path file);

  const JobRecord* Find(const std::string& id) const;  // nullptr: the run has not ended
  void Add(JobRecord record);

  // Writes the file: the records of these runs in their order, then all others, which belong to other settings.
  void Write(const std::vector<std::string>& ids) const;
  // Returns how many records are of none of these runs.
  size_t OthersThan(const std::vector<std::string>& ids) const;

 private:
  const std::filesystem::path file_;
  std::map<std::string, JobRecord> records_;  // by id
};

}  // namespace dtrain
