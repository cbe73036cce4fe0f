#include "framework/comm/patient_wait.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/log.h"

namespace dtrain {

void PatientWait::LookAt(Nanos now) {
  if (now < say_at_) return;
  ++said_;
  say_at_ = now + kSayAfter;
  const std::string who = peer_ == kAllRanks ? "all ranks" : fmt::format("rank {}", peer_);
  if (said_ < kSaidAtMost + (peer_ == 0 ? kMoreForRank0 : 0)) {
    log::Warning("still waiting for {} (set-up, evaluation or checkpoint)", who);
    return;
  }
  throw StalledError(
      fmt::format("{} did not answer for {:.0f} s (set-up, evaluation or checkpoint)", who,
                  ToSeconds(said_ * kSayAfter)),
      "");
}

}  // namespace dtrain
