// Counts, from the moves of a schedule, what a rank sends and adds in one run; interpreters of schedules must count the
// same.
#pragma once

#include <algorithm>
#include <map>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

struct ScheduleTraffic {
  int rounds = 0;
  int64_t messages = 0;  // sent
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t additions = 0;
};

// Returns the traffic of a vector of n floats.
inline ScheduleTraffic TrafficOf(const CollectiveSchedule& schedule, int64_t n) {
  ScheduleTraffic traffic;
  std::map<int, int> fetched;  // by round
  for (const Move& move : schedule.moves) {
    const int64_t size = BlockOf(n, schedule.blocks, move.block, move.count).size();
    if (size == 0) continue;
    traffic.rounds = std::max(traffic.rounds, move.round + 1);
    const int64_t bytes = size * static_cast<int64_t>(sizeof(float));
    if (move.kind == MoveKind::kSend) {
      traffic.messages += 1;
      traffic.bytes_sent += bytes;
    } else if (move.kind == MoveKind::kSum) {
      traffic.additions += fetched[move.round] * size;
    } else {
      traffic.bytes_received += bytes;
      fetched[move.round] += move.kind == MoveKind::kFetch ? 1 : 0;
    }
  }
  return traffic;
}

}  // namespace dtrain
