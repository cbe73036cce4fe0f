// RunRecord: the file that an asynchronous run writes with `strategy.record: true`.  It contains the config, the plan
// and the order of events on every rank, so that `dtrain simulate --replay` can repeat the run to the bit.
//
// Format: a line of text with the version, then length-prefixed parts, then the SHA-256 of everything before it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/exchange/event_log.h"

namespace dtrain {

struct RunRecord {
  std::string config_yaml;  // effective config
  std::string model_yaml;
  ExecutionPlan plan;
  int64_t first_step = 0;  // first step of the run; > 0: it was resumed
  // The weights file that the run started from; "": the weights were initialised.
  std::string weights;
  std::string weights_sha256;     // of the final weights
  std::vector<std::string> logs;  // bytes of the EventLog of each rank
  std::vector<int> node_of;       // node of each worker
};

// Returns the recorded compute time of each step by worker, in seconds.  Throws RunFileError if a log is corrupt or
// belongs to another number of workers.
std::vector<std::vector<double>> RecordedStepSeconds(const RunRecord& record);

// Throws RunFileError with path and reason.
void WriteRecord(const std::filesystem::path& path, const RunRecord& record);

// Throws RunFileError, naming the file, if it cannot be read, is no record or one of another version, or is truncated or
// damaged.
RunRecord ReadRecord(const std::filesystem::path& path);

// True if the file begins like a record of any version.
bool IsRecordFile(const std::filesystem::path& path);

}  // namespace dtrain
