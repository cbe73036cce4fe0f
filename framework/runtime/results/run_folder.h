// A run leaves this folder behind.
//
//   config.yaml  plan.json  metrics.jsonl  summary.json  checkpoints/  errors/rank-N.json
//   profile.json where a schedule was planned by measured times (ModelProfile)
//   ranks.jsonl, how the steps of each rank went (rank_times.h)
//   tensorboard/ where tensorboard asks for it (event_file.h)
//   record.bin, timeline.json and gradients.jsonl where strategy.record, timeline and gradients ask for them
//   run.lock while the run goes on (run_lock.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/runtime/results/run_lock.h"
#include "framework/runtime/results/summary.h"

namespace dtrain {

// ErrorRecord says why a rank failed.
struct ErrorRecord {
  int rank = 0;
  std::string host;
  int pid = 0;
  int exit_code = 1;
  int64_t epoch = 0;
  int64_t step = 0;
  std::string what;
  std::string hint;
};

std::string ToJson(const ErrorRecord& record);

// RunFolder knows the paths, and writes the small files, each durably.  Every rank may have one; rank 0 calls Create
// first.  All writes throw RunFileError with path and reason.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  // Makes the folder and finds out that it can be written, before anything is computed.  The folder
  // belongs to this run as long as the returned lock lives; with the lock goes a folder that was made here and
  // is still empty.  Throws UsageError when another run has it; when files lie there that no run has written and
  // this one would write over; for a fresh run (`resuming` false) when checkpoints lie there, which it would bury; and
  // when the best weights of an earlier run lie there without its checkpoints.
  [[nodiscard]] RunLock Create(bool resuming) const;

  // Throws what Create would, as far as can be told without making or locking anything.
  void CheckFree(bool resuming) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path plan() const { return path_ / "plan.json"; }
  std::filesystem::path profile() const { return path_ / "profile.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path ranks() const { return path_ / "ranks.jsonl"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path timeline() const { return path_ / "timeline.json"; }
  std::filesystem::path gradients() const { return path_ / "gradients.jsonl"; }
  std::filesystem::path record() const { return path_ / "record.bin"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path error(int rank) const;

  void WriteConfig(const std::string& yaml) const;
  void WritePlan(const ExecutionPlan& plan) const;
  void WriteProfile(const ModelProfile& profile) const;
  void WriteSummary(const Summary& summary) const;
  void WriteError(const ErrorRecord& record) const;

 private:
  std::filesystem::path path_;
};

}  // namespace dtrain
