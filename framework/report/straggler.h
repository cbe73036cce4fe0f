// The straggler of a run, for its report.
//
// A worker is named if all of this holds; the report says which of it does not:
//   - its step computes at least 25 % longer than the median of all workers (kClearlySlower), and longest of all;
//   - at most a quarter of the workers are that slow: more of them are machines of another kind, not one that is ill.
//     So there is none among fewer than four workers;
//   - its host has as many cores as ranks, where ranks.jsonl says which CPUs they may use.  Where ranks take turns on a
//     core, the times of their steps say nothing of the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace dtrain {

inline constexpr double kClearlySlower = 1.25;

// Returns {"rank", "compute_seconds" (of a step), "median_seconds", "factor"}, or {"none": why} as a sentence; null if
// there are fewer than two workers.  `workers` are the entries of a report's `ranks` or of workers_detail: rank, node,
// own_steps and compute_seconds, and where it is known cpus ("0-3,8").  Other entries are ignored.
nlohmann::ordered_json StragglerOf(const nlohmann::ordered_json& workers);

}  // namespace dtrain
