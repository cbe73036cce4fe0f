// How a supervised job ended: one line for the user and our exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/runtime/launch/status_record.h"

namespace dtrain {

// What the supervisor saw.
struct JobEnd {
  int exit_status = 0;            // mpirun's, as a shell has it (128+n when a signal killed it)
  std::vector<RankStatus> ranks;  // last records
  std::optional<int> first_lost;  // the rank whose process vanished first without a last word
  int stop_signal = 0;            // INT or TERM that the supervisor received
  bool killed = false;            // by a second one
};

struct Verdict {
  int exit_code = 0;
  std::string line;        // empty when all went well
  bool rank_lost = false;  // a restart may help
};

Verdict Judge(const JobEnd& end);

// `arguments` with any --resume replaced by `--resume auto`.
std::vector<std::string> WithResumeAuto(const std::vector<std::string>& arguments);

}  // namespace dtrain
