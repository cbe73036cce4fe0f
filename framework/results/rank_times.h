// RankTimes: the compute and wait times of each rank's steps in the course of a run, and the rank's traffic.
//
// Between two boundaries a rank collects them in StepWindows, a bounded number of sums, and sends them to rank 0 at the
// next boundary, so no step pays for it.  Rank 0 writes one line for each rank and boundary to ranks.jsonl:
//
//   {"schema":1,"step":938,"rank":1,"role":"worker 1","node":"cn12","seconds":[0.11,...],"own_steps":[8,...],
//    "compute_seconds":[...],"wait_seconds":[...],"longest_seconds":[...],
//    "bytes_sent":..,"bytes_received":..,"messages":..,"staleness":[..],"cpus":"0-3"}
//
// The lists have one entry for each window of `own_steps` steps of the worker on this rank; they are empty if the rank
// has no worker.  `seconds` is the training time at the window's end (`training_seconds` of metrics.jsonl).
// `compute_seconds` and `wait_seconds` are sums over the window's steps, `longest_seconds` is the longest step.
// Traffic and the staleness histogram count since the last boundary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/exchange/exchange.h"
#include "framework/results/json_lines.h"
#include "framework/results/trained_epoch.h"

namespace dtrain {

// The version of a line's keys.
inline constexpr int kRanksSchema = 1;

struct StepWindow {
  double at_seconds = 0;  // training time at the window's end
  int64_t steps = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double longest_seconds = 0;
};

// Collects the steps since the last Take in windows of 1 step each.  When kMost windows are full, neighbours are
// joined, so that windows have 2, then 4, ... steps.
class StepWindows {
 public:
  static constexpr size_t kMost = 128;

  void Add(double at_seconds, double compute_seconds, double wait_seconds);
  // Returns the windows and starts again with windows of 1 step.
  std::vector<StepWindow> Take();

 private:
  void HalveThem();

  std::vector<StepWindow> windows_;
  int64_t steps_ = 1;  // in a window
};

struct RankTimes {
  int rank = 0;
  std::string role;  // "worker 3"
  std::string node;
  std::vector<StepWindow> windows;
  Collective::Traffic traffic;
  std::vector<int64_t> staleness;
  TrainedEpoch epoch;  // not written to the file: rank 0 adds it up over the ranks
  std::string cpus;    // CPUs that the rank may use, as CpuListText writes them; "": unknown
  DTRAIN_FIELDS(rank, role, node, windows, traffic, staleness, epoch, cpus)
};

// Convert ascending CPU numbers to Linux's list format, "0-3,8", and back.  A text in no such format has no CPUs.
std::string CpuListText(const std::vector<int>& cpus);
std::vector<int> CpusOfList(const std::string& text);

// Writes ranks.jsonl; only rank 0 has a writer.
class RankTimesWriter {
 public:
  // Opens the file as JsonLines does.  `seconds_before` is the training time before the resume.
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
