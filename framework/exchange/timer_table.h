// TimerTable: the timers that the actors of a rank have set.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "framework/core/time.h"
#include "framework/strategies/message.h"

namespace dtrain {

class TimerTable {
 public:
  struct Timer {
    ActorId actor;
    int number;  // the actor's own
  };

  void Set(Nanos at, Timer timer) { timers_.insert({at, timer}); }
  // Returns {actor, number, time left} for each timer, in one list.
  std::vector<int64_t> Left(Nanos now) const {
    std::vector<int64_t> left;
    for (const auto& [at, timer] : timers_)
      left.insert(left.end(), {timer.actor, timer.number, at - now});
    return left;
  }
  void SetAll(const std::vector<int64_t>& left, Nanos now) {
    timers_.clear();
    for (size_t i = 0; i + 2 < left.size(); i += 3) {
      Set(now + left[i + 2], {static_cast<ActorId>(left[i]), static_cast<int>(left[i + 1])});
    }
  }
  // While `held`, no timer is due.
  void Hold(bool held) { held_ = held; }
  bool held() const { return held_; }
  // Returns the time at which the next timer is due; negative if there is none.
  Nanos Next() const { return held_ || timers_.empty() ? -1 : timers_.begin()->first; }

  // TakeDue removes and returns a timer that is due by `now`, TakeNumber one with this number at
  // any time.
  std::optional<Timer> TakeDue(Nanos now) {
    if (Next() < 0 || Next() > now) return std::nullopt;
    return Take(timers_.begin());
  }
  std::optional<Timer> TakeNumber(int number) {
    const auto it = std::find_if(timers_.begin(), timers_.end(),
                                 [number](const auto& set) { return set.second.number == number; });
    if (it == timers_.end()) return std::nullopt;
    return Take(it);
  }

 private:
  using Timers = std::multimap<Nanos, Timer>;

  Timer Take(Timers::iterator it) {
    const Timer timer = it->second;
    timers_.erase(it);
    return timer;
  }

  Timers timers_;
  bool held_ = false;
};

}  // namespace dtrain
