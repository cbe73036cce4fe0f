// What ranks.jsonl (results/rank_times.h) says of a run, for its report: step times and waits of each worker
// over time, traffic over time, staleness so far.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// Fills, where there is anything to tell,
//   "ranks"      [{"rank", "role", "node", "own_steps", "compute_seconds", "wait_seconds", "longest_seconds",
//                  "bytes_sent", "bytes_received", "messages", "times": Series}], totals since the start;
//                "times", in milliseconds a step, is there for the 16 slowest and the 16 fastest workers
//   "traffic"    Series of "seconds", "sent", "received": bytes of all ranks so far, at each boundary
//   "staleness"  [s]: gradients of staleness s so far
// Returns the number of damaged lines.
int64_t DescribeRanks(const std::filesystem::path& ranks_file, nlohmann::ordered_json& report);

}  // namespace dtrain
