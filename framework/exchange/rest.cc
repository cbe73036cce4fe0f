#include "framework/exchange/rest.h"

#include <utility>

#include "framework/core/check.h"

namespace dtrain {
namespace {

struct Started {
  static constexpr int kKind = 101;
  int64_t samples = 0, ended_samples = 0;
  double ended_loss = 0;
  int64_t stop = 0, finite = 1;
  template <class F>
  void Fields(F&& field) {
    field(samples), field(ended_samples), field(ended_loss), field(stop), field(finite);
  }
};

struct Withhold {
  static constexpr int kKind = 102;
  template <class F>
  void Fields(F&&) {}
};

struct Withheld {
  static constexpr int kKind = 103;
  int64_t ended_samples = 0;
  double ended_loss = 0;
  int64_t stop = 0, finite = 1;
  int64_t samples_applied = 0;  // synchronous: by all
  template <class F>
  void Fields(F&& field) {
    field(ended_samples), field(ended_loss), field(stop), field(finite), field(samples_applied);
  }
};

struct Count {
  static constexpr int kKind = 104;
  int64_t round = 0;
  template <class F>
  void Fields(F&& field) {
    field(round);
  }
};

struct MessageCount {
  static constexpr int kKind = 105;
  int64_t round = 0, sent = 0, received = 0, idle = 0, finite = 1;
  template <class F>
  void Fields(F&& field) {
    field(round), field(sent), field(received), field(idle), field(finite);
  }
};

struct AllQuiet {
  static constexpr int kKind = 107;
  int64_t samples_applied = 0, last = 0;
  template <class F>
  void Fields(F&& field) {
    field(samples_applied), field(last);
  }
};

struct AtRest {
  static constexpr int kKind = 106;
  int64_t samples_applied = 0, stop = 0, finite = 1;
  template <class F>
  void Fields(F&& field) {
    field(samples_applied), field(stop), field(finite);
  }
};

struct Tell {
  static constexpr int kKind = 108;
  int64_t samples_applied = 0, samples = 0;
  double loss_sum = 0;
  template <class F>
  void Fields(F&& field) {
    field(samples_applied), field(samples), field(loss_sum);
  }
};

}  // namespace

Rest::Rest(Driver& driver, const Options& options)
    : driver_(driver),
      options_(options),
      keeper_rank_(options.placement.servers > 0
                       ? options.placement.RankOf(options.placement.ServerId(0))
                       : 0),
      samples_(options.samples_applied),
      next_(options.rule.NextAfter(options.samples_applied)) {
  state_.samples_applied = told_.samples_applied = options.samples_applied;
  keeper_.next = next_;
  keeper_.started = keeper_.ended = options.samples_applied;
  // A run that is resumed at its end has nothing left to start.
  if (options.samples_applied < options.rule.last_samples) return;
  if (local()) {
    Reach(state_);
  } else if (driver_.HasWorker()) {
    Withdraw();
  }
}

// ------------------------------------------------------------------ a worker's rank

void Rest::StepStarts(int64_t samples) {
  running_ = true;
  if (options_.synchronous) return;
  driver_.SendService(keeper_rank_, Pack(Started{samples, ended_.samples, ended_.loss_sum,
                                                 ended_.stop, ended_.finite}));
  ended_ = {};
}

void Rest::StepEnded(const StepOutcome& outcome) {
  running_ = false;
  ended_ = outcome;
  if (!options_.synchronous) {
    if (driver_.withheld()) SayWithheld();
    return;
  }
  samples_ += outcome.samples;
  if (samples_ < next_ && !outcome.stop && outcome.finite) return;
  next_ = options_.rule.NextAfter(samples_);
  if (local()) {
    driver_.Withhold(true);
    Reach({samples_, outcome.stop, outcome.finite});
  } else {
    Withdraw();
  }
}

// A step that was admitted during the previous rest starts when that rest is left.  The next
// Withhold may arrive before StepStarts is called for it.
void Rest::Withdraw() {
  driver_.Withhold(true);
  const bool starts = driver_.StepStarted() && !driver_.StepEnded();
  if (!running_ && !starts) SayWithheld();
}

void Rest::SayWithheld() {
  if (said_withheld_) return;
  said_withheld_ = true;
  driver_.SendService(keeper_rank_, Pack(Withheld{ended_.samples, ended_.loss_sum, ended_.stop,
                                                  ended_.finite, samples_}));
  ended_ = {};
}

void Rest::Reach(const RestState& state) {
  state_ = state;
  reached_ = true;
}

void Rest::Leave() {
  reached_ = said_withheld_ = false;
  driver_.HoldTimers(false);
  driver_.Withhold(false);
}

void Rest::OnMessage(const Message& message) {
  switch (message.kind) {
    case Started::kKind:
      return KeepStarted(message);
    case Withhold::kKind:
      if (driver_.HasWorker()) Withdraw();
      return;
    case Withheld::kKind:
      return KeepWithheld(message);
    case Count::kKind:
      return AnswerCount(message);
    case MessageCount::kKind:
      return KeepCounted(message);
    case AllQuiet::kKind: {
      const auto quiet = Unpack<AllQuiet>(message);
      driver_.TellQuiet({quiet.samples_applied, quiet.last != 0});
      return;
    }
    case AtRest::kKind: {
      const auto rest = Unpack<AtRest>(message);
      driver_.Withhold(true);
      Reach({rest.samples_applied, rest.stop != 0, rest.finite != 0});
      return;
    }
    case Tell::kKind: {
      const auto tell = Unpack<Tell>(message);
      told_.samples_applied = tell.samples_applied;
      told_.samples += tell.samples;
      told_.loss_sum += tell.loss_sum;
      return;
    }
    default:
      return;
  }
}

// From here on nothing may begin by itself.
void Rest::AnswerCount(const Message& message) {
  driver_.HoldTimers(true);
  // The two counts are read together: a letter that is being handled has been received.
  driver_.SendService(
      keeper_rank_,
      Pack(MessageCount{Unpack<Count>(message).round, driver_.letters_sent(),
                        driver_.letters_received(), !driver_.HasOperation(), driver_.finite()}));
}

// ------------------------------------------------------------------ the keeper

void Rest::KeepStarted(const Message& message) {
  const auto started = Unpack<Started>(message);
  keeper_.started += started.samples;
  KeepEnded(started.ended_samples, started.ended_loss, started.stop != 0, started.finite != 0);
  WithholdIfDue();
}

// Tells rank 0 whenever another global batch has been computed; what is less is told at rest.
void Rest::KeepEnded(int64_t samples, double loss_sum, bool stop, bool finite) {
  keeper_.ended += samples;
  keeper_.stop |= stop;
  keeper_.finite &= finite;
  keeper_.told.samples += samples;
  keeper_.told.loss_sum += loss_sum;
  if (keeper_.told.samples >= options_.rule.batch) TellRoot();
}

void Rest::TellRoot() {
  const Told told = std::exchange(keeper_.told, {});
  driver_.SendService(0, Pack(Tell{keeper_.ended, told.samples, told.loss_sum}));
}

void Rest::WithholdIfDue() {
  if (options_.synchronous || keeper_.withholding) return;
  if (keeper_.started < keeper_.next && !keeper_.stop && keeper_.finite) return;
  keeper_.withholding = true;
  for (ActorId worker = 0; worker < options_.placement.workers; ++worker) {
    driver_.SendService(options_.placement.RankOf(worker), Pack(Withhold{}));
  }
}

void Rest::KeepWithheld(const Message& message) {
  const auto withheld = Unpack<Withheld>(message);
  if (options_.synchronous) {
    keeper_.ended = withheld.samples_applied;
    keeper_.stop |= withheld.stop != 0;
    keeper_.finite &= withheld.finite != 0;
  } else {
    KeepEnded(withheld.ended_samples, withheld.ended_loss, withheld.stop != 0,
              withheld.finite != 0);
  }
  if (++keeper_.withheld == options_.placement.workers) StartCount();
}

void Rest::StartCount() {
  ++keeper_.round;
  keeper_.counted = 0;
  keeper_.sent = keeper_.received = 0;
  keeper_.idle = true;
  for (Rank rank = 0; rank < options_.placement.ranks(); ++rank) {
    driver_.SendService(rank, Pack(Count{keeper_.round}));
  }
}

void Rest::KeepCounted(const Message& message) {
  const auto counted = Unpack<MessageCount>(message);
  DT_CHECK(counted.round == keeper_.round) << counted.round << " instead of " << keeper_.round;
  keeper_.sent += counted.sent;
  keeper_.received += counted.received;
  keeper_.idle &= counted.idle != 0;
  keeper_.finite &= counted.finite != 0;  // also what the last pushes did at the servers
  if (++keeper_.counted < options_.placement.ranks()) return;
  const bool settled = keeper_.idle && keeper_.sent == keeper_.received;
  if (!settled || keeper_.sent != keeper_.sent_before) {
    keeper_.sent_before = settled ? keeper_.sent : -1;
    return StartCount();
  }
  Settle();
}

// All is quiet: the actors get a word, whose letters are waited for; then there is rest.
void Rest::Settle() {
  const bool last = keeper_.ended >= options_.rule.last_samples;
  if (!keeper_.told_quiet) {
    keeper_.told_quiet = true;
    keeper_.sent_before = -1;
    for (Rank rank = 0; rank < options_.placement.ranks(); ++rank) {
      driver_.SendService(rank, Pack(AllQuiet{keeper_.ended, last}));
    }
    return StartCount();
  }
  if (keeper_.told.samples > 0) TellRoot();
  const AtRest rest{keeper_.ended, keeper_.stop, keeper_.finite};
  const int64_t round = keeper_.round;
  const int64_t ended = keeper_.ended;
  keeper_ = {};
  keeper_.round = round;
  keeper_.started = keeper_.ended = ended;
  keeper_.next = options_.rule.NextAfter(ended);
  for (Rank rank = 0; rank < options_.placement.ranks(); ++rank) {
    driver_.SendService(rank, Pack(rest));
  }
}

}  // namespace dtrain
