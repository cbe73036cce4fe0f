#include "framework/exchange/stall_watch.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "framework/comm/backoff.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace dtrain {
namespace {

constexpr Nanos kAskFor = 3'000'000'000;  // how long a stalled rank waits for answers
// Limits that a computing rank may take for its first step.  Later the limit is many steps long.
constexpr int kPatience = 10;
// A rank hangs if a step takes this many times its longest one so far.
constexpr int64_t kSteps = 20;
// If two polls are further apart than this (normally by a pause of Backoff), the process was
// suspended, and perhaps all others with it (Ctrl-Z, scontrol suspend).  What they would have sent
// in that time is still to come.
constexpr Nanos kStoodStill = 1'000'000'000;

}  // namespace

StallWatch::StallWatch(Driver& driver, const Placement& placement, const Clock& clock, Nanos limit,
                       std::function<bool()> computing)
    : driver_(driver),
      placement_(placement),
      rank_(driver.mailbox().rank()),
      ranks_(placement.ranks()),
      clock_(clock),
      limit_(limit),
      computing_(std::move(computing)) {
  Service& service = driver.service();
  service.On<control::Ask>([this](const control::Ask&, Rank from) {
    driver_.service().Send(from, control::Answer{computing_(), longest_step_, driver_.Describe()});
  });
  service.On<control::Answer>(
      [this](const control::Answer& answer, Rank from) { answers_[from] = answer; });
  Moved();
}

Nanos StallWatch::Limit() const {
  return limit_ > 0 ? limit_ : std::max<Nanos>(FromSeconds(30), kSteps * longest_step_);
}

void StallWatch::Moved() {
  last_move_ = last_poll_ = clock_.Now();
  asked_times_ = 0;
  last_answers_.clear();
}

// Returns the time since the last poll if the process was suspended in it, else 0.  Notes this
// poll.
Nanos StallWatch::StoodStill() {
  const Nanos passed = clock_.Now() - last_poll_;
  last_poll_ += passed;
  return passed > kStoodStill ? passed : 0;
}

void StallWatch::NothingMoved(const std::function<bool()>& move) {
  last_move_ += StoodStill();
  const Nanos waited = last_poll_ - last_move_;
  if (waited <= (asked_times_ + 1) * Limit()) return;
  const int64_t messages = driver_.mailbox().received();
  AskAll(move);
  if (driver_.mailbox().received() != messages) {
    last_move_ = clock_.Now();
    return;
  }
  // The steps of other ranks may take longer than those of this one.
  const bool computes = std::any_of(answers_.begin(), answers_.end(), [&](const auto& answer) {
    const Nanos longest = answer.second.longest_step;
    return answer.second.computing != 0 &&
           (longest == 0 ? asked_times_ + 1 < kPatience : waited <= kSteps * longest);
  });
  // If the answers differ from the last ones, something moves elsewhere.
  const bool moves = answers_ != last_answers_;
  last_answers_ = answers_;
  if (AllAnswer() && (moves || computes)) {
    ++asked_times_;
    log::Warning("rank {} has waited for {:.0f} s{}", rank_, ToSeconds(waited), StatesOfAll());
    return;
  }
  throw StalledError(fmt::format("rank {} of {}: nothing has moved for {:.0f} s{}", rank_, ranks_,
                                 ToSeconds(waited), StatesOfAll()),
                     "a rank that does not answer is gone or hangs; stall_seconds sets the limit");
}

void StallWatch::AskAll(const std::function<bool()>& move) {
  answers_.clear();
  answers_[rank_] = {false, longest_step_, driver_.Describe()};
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) driver_.service().Send(rank, control::Ask{});
  }
  Backoff backoff;
  last_poll_ = clock_.Now();
  Nanos until = last_poll_ + kAskFor;
  while (!AllAnswer() && last_poll_ < until) {
    if (!move()) backoff.Pause();
    until += StoodStill();
  }
}

std::string StallWatch::StatesOfAll() const {
  std::string lines;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto it = answers_.find(rank);
    if (it == answers_.end()) {
      lines += fmt::format("\n  rank {}: {}, no answer", rank, placement_.RoleOf(rank));
    } else {
      lines += fmt::format("\n  rank {}: {}{}", rank, it->second.waits_for,
                           it->second.computing != 0 ? " (computing)" : "");
    }
  }
  return lines;
}

}  // namespace dtrain
