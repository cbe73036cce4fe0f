// RankTimes: how long the steps of each rank took and waited as a run went on, and what it sent.
//
// A rank keeps them between two boundaries (StepWindows: a bounded number of means) and hands them in at the next
// one, so that no step pays for it.  Rank 0 writes one line a rank and boundary to ranks.jsonl:
//
//   {"schema":1,"step":938,"rank":1,"role":"worker 1","node":"cn12","seconds":[0.11,...],"own_steps":[8,...],
//    "compute_seconds":[...],"wait_seconds":[...],"longest_seconds":[...],
//    "bytes_sent":..,"bytes_received":..,"messages":..,"staleness":[..]}
//
// The lists have one entry a window of `own_steps` steps of this rank's worker, empty where it has none:
// `seconds` is training time at its end (as `training_seconds` of metrics.jsonl), the others are sums over
// its steps, `longest_seconds` its longest step.  Traffic and the histogram of staleness are those since the
// boundary before.  Lines without a schema are older programs': own_steps is `steps` in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/exchange/exchange.h"
#include "framework/runtime/results/json_lines.h"
#include "framework/runtime/results/trained_epoch.h"

namespace dtrain {

inline constexpr int kRanksSchema = 1;

struct StepWindow {
  double at_seconds = 0;  // at its end
  int64_t steps = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double longest_seconds = 0;
};

// The steps since the last Take, in windows of equally many: of 1 step as long as they fit, then of 2, 4, ...
class StepWindows {
 public:
  static constexpr size_t kMost = 128;

  void Add(double at_seconds, double compute_seconds, double wait_seconds);
  // Begins anew.
  std::vector<StepWindow> Take();

 private:
  void HalveThem();

  std::vector<StepWindow> windows_;
  int64_t steps_ = 1;  // of a window
};

struct RankTimes {
  int rank = 0;
  std::string role;  // "worker 3"
  std::string node;
  std::vector<StepWindow> windows;
  Collective::Traffic traffic;
  std::vector<int64_t> staleness;
  TrainedEpoch epoch;  // not for the file: rank 0 sums it over the ranks
  DTRAIN_FIELDS(rank, role, node, windows, traffic, staleness, epoch)
};

// Rank 0 has one.
class RankTimesWriter {
 public:
  // As JsonLines.  `seconds_before`: of training before the resume.
  RankTimesWriter(const std::filesystem::path& path, std::optional<int64_t> resumed_step,
                  double seconds_before)
      : lines_(path, resumed_step), seconds_before_(seconds_before) {}

  // Throws RunFileError when the disk does not take the line.
  void Write(int64_t step, const RankTimes& times);

 private:
  JsonLines lines_;
  const double seconds_before_;
};

}  // namespace dtrain
