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
constexpr int kPatience = 10;             // limits that a computing rank may take
constexpr char kComputing[] = " (computing)";

// "What do your actors wait for?"
struct Ask {
  static constexpr int kKind = 201;
  template <class F>
  void Fields(F&&) {}
};

struct State {
  static constexpr int kKind = 202;
  int64_t computing = 0;
  std::vector<int64_t> text;  // a word a character: stall reports are rare and short
  template <class F>
  void Fields(F&& field) {
    field(computing), field(text);
  }
};

}  // namespace

StallWatch::StallWatch(Driver& driver, const Placement& placement, const Transport& transport,
                       const Clock& clock, Nanos limit)
    : driver_(driver),
      placement_(placement),
      rank_(transport.rank()),
      ranks_(transport.size()),
      clock_(clock),
      limit_(limit) {
  Moved();
}

Nanos StallWatch::Limit() const {
  return limit_ > 0 ? limit_ : std::max<Nanos>(FromSeconds(30), 20 * longest_step_);
}

void StallWatch::Moved() {
  last_move_ = clock_.Now();
  asked_times_ = 0;
  last_states_.clear();
}

void StallWatch::NothingMoved(const std::function<bool()>& move) {
  const Nanos waited = clock_.Now() - last_move_;
  if (waited <= (asked_times_ + 1) * Limit()) return;
  const int64_t letters = driver_.letters_received();
  AskAll(move);
  if (driver_.letters_received() != letters) {
    last_move_ = clock_.Now();
    return;
  }
  const bool computes = std::any_of(states_.begin(), states_.end(), [](const auto& state) {
    return state.second.ends_with(kComputing);
  });
  // Answers that differ from the last ones: something moves, its letter is on the way.
  const bool moves = states_ != last_states_;
  last_states_ = states_;
  if (AllAnswer() && (moves || (computes && asked_times_ + 1 < kPatience))) {
    ++asked_times_;
    log::Warning("rank {} has waited for {:.0f} s{}", rank_, ToSeconds(waited), StatesOfAll());
    return;
  }
  throw StalledError(fmt::format("rank {} of {}: nothing has moved for {:.0f} s{}", rank_, ranks_,
                                 ToSeconds(waited), StatesOfAll()),
                     "a rank that does not answer is gone or hangs; stall_seconds sets the limit");
}

bool StallWatch::OnLetter(const Letter& letter, bool computing) {
  if (letter.message.kind == Ask::kKind) {
    const std::string text = driver_.Describe();
    driver_.SendService(letter.from_rank, Pack(State{computing, {text.begin(), text.end()}}));
  } else if (letter.message.kind == State::kKind) {
    const auto state = Unpack<State>(letter.message);
    states_[letter.from_rank] = std::string(state.text.begin(), state.text.end());
    if (state.computing != 0) states_[letter.from_rank] += kComputing;
  } else {
    return false;
  }
  return true;
}

void StallWatch::AskAll(const std::function<bool()>& move) {
  states_.clear();
  states_[rank_] = driver_.Describe();
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) driver_.SendService(rank, Pack(Ask{}));
  }
  Backoff backoff;
  const Nanos until = clock_.Now() + kAskFor;
  while (!AllAnswer() && clock_.Now() < until) {
    if (!move()) backoff.Pause();
  }
}

std::string StallWatch::StatesOfAll() const {
  std::string lines;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto it = states_.find(rank);
    const std::string state =
        it != states_.end() ? it->second : placement_.RoleOf(rank) + ", no answer";
    lines += fmt::format("\n  rank {}: {}", rank, state);
  }
  return lines;
}

}  // namespace dtrain
