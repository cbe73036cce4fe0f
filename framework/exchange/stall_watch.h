// StallWatch: notices that a rank waits in vain, and says for every rank what it waits for.
//
// When nothing has moved for the limit, it asks every rank by message.  While all answer, and answer
// otherwise than a limit before or some compute (for 20 of their longest step; ten limits where they
// have done none), the wait goes on, and a warning says so; else StalledError (exit 7) has each rank's
// answer and names those that did not answer.  A time in which this process stood still is no waiting.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "framework/core/time.h"
#include "framework/exchange/driver.h"

namespace dtrain {

class StallWatch {
 public:
  // `limit` 0: 20 times the longest step so far, at least 30 s.  `computing`: whether this rank's
  // trainer is.  The references outlive the watch.
  StallWatch(Driver& driver, const Placement& placement, const Clock& clock, Nanos limit,
             std::function<bool()> computing);
  StallWatch(const StallWatch&) = delete;

  void StepTook(Nanos time) { longest_step_ = std::max(longest_step_, time); }

  // Something moved, or nothing is expected of others.
  void Moved();
  // Nothing did.  `move` moves the rank along a little and says whether anything moved: answers
  // are awaited with it.
  void NothingMoved(const std::function<bool()>& move);

 private:
  Nanos Limit() const;
  Nanos StoodStill();
  void AskAll(const std::function<bool()>& move);
  bool AllAnswer() const { return static_cast<int>(answers_.size()) == ranks_; }
  std::string StatesOfAll() const;

  Driver& driver_;
  const Placement& placement_;
  const Rank rank_;
  const int ranks_;
  const Clock& clock_;
  const Nanos limit_;
  const std::function<bool()> computing_;
  Nanos longest_step_ = 0;
  Nanos last_move_ = 0;
  Nanos last_poll_ = 0;
  int asked_times_ = 0;  // since then
  std::map<Rank, control::Answer> answers_;
  std::map<Rank, control::Answer> last_answers_;  // of the time before, since then
};

}  // namespace dtrain
