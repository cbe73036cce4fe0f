// RunRecord: what an asynchronous run writes with `strategy.record: true`, so that `dtrain simulate
// --replay` can repeat it to the bit - its config, its plan and the order of events on every rank.
//
// File: a line of text with a version, then length-prefixed parts, then the SHA-256 of all before
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/exchange/event_log.h"

namespace dtrain {

struct RunRecord {
  int version = EventLog::kVersion;  // of the logs
  std::string config_yaml;           // effective
  std::string model_yaml;
  ExecutionPlan plan;
  int64_t first_step = 0;         // > 0: resumed
  std::string weights;            // file it started from; "": the initialisers
  std::string weights_sha256;     // at the end
  std::vector<std::string> logs;  // EventLog bytes of each rank
  std::vector<int> node_of;       // the node of each worker; from version 3 on
};

// How long each worker's steps computed, in seconds, as recorded.  Throws RunFileError where a log is corrupt
// or of other workers.
std::vector<std::vector<double>> RecordedStepSeconds(const RunRecord& record);

// Throws RunFileError with path and reason.
void WriteRecord(const std::filesystem::path& path, const RunRecord& record);

// Throws RunFileError naming the file when it cannot be read, is no record, is cut short or
// damaged.
RunRecord ReadRecord(const std::filesystem::path& path);

// True where the file begins as a record of any version does.
bool IsRecordFile(const std::filesystem::path& path);

}  // namespace dtrain
