// RunFolder: the folder with the results of a run.
//
//   config.yaml  plan.json  metrics.jsonl  summary.json  checkpoints/  errors/rank-N.json
//   profile.json if the schedule was planned by measured times (ModelProfile)
//   ranks.jsonl: step times of each rank (rank_times.h)
//   tensorboard/ if the key `tensorboard` asks for it (event_file.h)
//   record.bin, timeline.json, gradients.jsonl if the keys strategy.record, timeline, gradients ask for them
//   run.lock while the run goes on (run_lock.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "framework/results/run_lock.h"
#include "framework/results/summary.h"

namespace dtrain {

// Describes the reason why a rank failed.
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

// Knows the paths and writes the small files, each durably.  Every rank may have one; rank 0 calls Create first.  All
// writes throw RunFileError with path and reason.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  // Creates the folder and checks that it can be written, before anything is computed.  The folder belongs to this run
  // as long as the returned lock lives.  If the folder was created here and is still empty at the end, the lock removes
  // it.  Throws UsageError
  //   - if another run is writing into the folder,
  //   - if the folder contains files that no run has written and this run would overwrite,
  //   - for a fresh run (`resuming` false), if the folder contains checkpoints, which would be mixed up with its own,
  //   - if the folder contains the best weights of an earlier run without its checkpoints.
  [[nodiscard]] RunLock Create(bool resuming) const;

  // Throws the errors of Create that can be found without creating or locking anything.
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
