// The part of the report that comes from ranks.jsonl (results/rank_times.h): step times and waits of each worker over
// time, traffic over time, and staleness.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace dtrain {

// Fills these keys if the file has data for them:
//   "ranks"      [{"rank", "role", "node", "own_steps", "compute_seconds", "wait_seconds", "longest_seconds",
//                  "bytes_sent", "bytes_received", "messages", "times": Series}], totals since the start;
//                  "times", in milliseconds per step, only for the 16 slowest and the 16 fastest workers
//   "traffic"    Series of "seconds", "sent", "received": bytes of all ranks since the start, at each boundary
//   "staleness"  [s]: number of gradients of staleness s since the start
// Returns the number of damaged lines.
int64_t DescribeRanks(const std::filesystem::path& ranks_file, nlohmann::ordered_json& report);

}  // namespace dtrain
