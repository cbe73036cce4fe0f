// StallWatch: detects that a rank waits in vain, and reports for every rank what it waits for.
//
// When nothing has moved for the time limit, it asks every rank by message.  It logs a warning and
// goes on waiting if all ranks answer, and either some answer has changed since the last limit, or
// some rank is computing and may be slow: for up to 20 times its longest step, or ten limits if it
// has finished no step.  Otherwise it throws StalledError (exit code 7), which has each rank's
// answer and names the ranks that did not answer.  Time during which this process was suspended
// does not count as waiting.
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
  // `limit` 0 stands for 20 times the longest step so far, and at least 30 s.  `computing` returns
  // true while this rank's trainer computes.  The references outlive the watch.
  StallWatch(Driver& driver, const Placement& placement, const Clock& clock, Nanos limit,
             std::function<bool()> computing);
  StallWatch(const StallWatch&) = delete;

  void StepTook(Nanos time) { longest_step_ = std::max(longest_step_, time); }

  // Call it when something moved, or when this rank expects nothing from others.
  void Moved();
  // Call it when nothing moved.  `move` advances the rank a little and returns true if anything
  // moved; it is called while waiting for answers.
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
  int asked_times_ = 0;  // times that it asked since last_move_
  std::map<Rank, control::Answer> answers_;
  std::map<Rank, control::Answer> last_answers_;  // of the time before; empty after a move
};

}  // namespace dtrain
