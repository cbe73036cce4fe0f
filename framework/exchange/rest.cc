#include "framework/exchange/rest.h"

#include <utility>

#include "framework/core/check.h"
#include "framework/core/state_record.h"

namespace dtrain {
namespace {

Rank KeeperRank(const Placement& placement) {
  return placement.servers > 0 ? placement.RankOf(placement.ServerId(0)) : 0;
}

}  // namespace

Rest::Rest(Driver& driver, const ExchangeSpec& spec, Rank rank)
    : driver_(driver),
      spec_(spec),
      keeper_rank_(KeeperRank(spec.placement())),
      next_(spec.rule.NextAfter(spec.start.samples_applied)) {
  HandleLetters();
  const int64_t begin = spec.start.samples_applied;
  state_.samples_applied = told_.samples_applied = begin;
  keeper_.next = next_;
  keeper_.started = keeper_.ended = begin;
  // A run that is resumed at its end has nothing left to start.
  if (begin < spec.rule.last_samples || spec.start.over) return;
  if (local()) {
    Reach(state_);
  } else if (driver_.HasWorker()) {
    Withdraw();
  }
}

void Rest::HandleLetters() {
  Service& service = driver_.service();
  service.On<letter::Withhold>([this](const letter::Withhold&, Rank) {
    if (driver_.HasWorker()) Withdraw();
  });
  service.On<letter::Count>([this](const letter::Count& count, Rank) { AnswerCount(count); });
  service.On<letter::AllQuiet>([this](const letter::AllQuiet& quiet, Rank) {
    driver_.TellQuiet({quiet.samples_applied, quiet.last != 0});
  });
  service.On<letter::AtRest>([this](const letter::AtRest& rest, Rank) {
    driver_.Withhold(true);
    Reach({rest.samples_applied, rest.stop != 0, rest.finite != 0});
  });
  service.On<letter::TellRoot>([this](const letter::TellRoot& news, Rank) {
    told_.samples_applied = news.samples_applied;
    told_.samples += news.samples;
    told_.loss_sum += news.loss_sum;
  });
  service.On<letter::Started>(
      [this](const letter::Started& started, Rank) { KeepStarted(started); });
  service.On<letter::Withheld>(
      [this](const letter::Withheld& withheld, Rank) { KeepWithheld(withheld); });
  service.On<letter::Gone>([this](const letter::Gone& gone, Rank) {
    driver_.NoteGone(static_cast<ActorId>(gone.worker));
  });
  service.On<letter::Counted>(
      [this](const letter::Counted& counted, Rank) { KeepCounted(counted); });
}

// ------------------------------------------------------------------ a worker's rank

void Rest::StepStarts(int64_t samples) {
  if (spec_.synchronous()) return;
  driver_.service().Send(keeper_rank_, letter::Started{samples, std::exchange(ended_, {})});
}

void Rest::StepEnded() {
  const StepOutcome& outcome = driver_.outcome();
  ended_ = {outcome.samples, outcome.loss_sum, outcome.stop, outcome.finite};
  if (!spec_.synchronous()) {
    if (driver_.withheld()) SayWithheld();
    return;
  }
  const int64_t samples = driver_.samples_applied();
  if (samples < next_ && !outcome.stop && outcome.finite) return;
  next_ = spec_.rule.NextAfter(samples);
  if (local()) {
    driver_.Withhold(true);
    Reach({samples, outcome.stop, outcome.finite});
  } else {
    Withdraw();
  }
}

// The keeper hears of it before it counts: letters of a pair stay in order.
void Rest::Died() {
  driver_.TellNode();
  driver_.service().Send(keeper_rank_, letter::Gone{driver_.worker()});
  if (driver_.withheld()) SayWithheld();
}

// A step that was admitted during the previous rest starts when that rest is left.  The next
// Withhold may arrive before StepStarts is called for it.
void Rest::Withdraw() {
  driver_.Withhold(true);
  if (!driver_.Stepping()) SayWithheld();
}

void Rest::SayWithheld() {
  if (said_withheld_) return;
  said_withheld_ = true;
  driver_.service().Send(keeper_rank_,
                         letter::Withheld{std::exchange(ended_, {}), driver_.samples_applied()});
}

void Rest::Reach(const RestState& state) {
  state_ = state;
  reached_ = true;
}

void Rest::VisitTold(StateVisitor& visitor) {
  visitor.Int("told_samples_applied", told_.samples_applied);
  visitor.Int("told_samples", told_.samples);
  VisitDouble(visitor, "told_loss_sum", told_.loss_sum);
}

void Rest::Leave() {
  reached_ = said_withheld_ = false;
  driver_.timers().Hold(false);
  driver_.Withhold(false);
}

// From here on nothing may begin by itself.
void Rest::AnswerCount(const letter::Count& count) {
  driver_.timers().Hold(true);
  // The two counts are read together: a letter that is being handled has been received.
  const Post& post = driver_.post();
  driver_.service().Send(keeper_rank_,
                         letter::Counted{count.round, post.sent(), post.received(),
                                         driver_.effects().empty(), driver_.finite()});
}

// ------------------------------------------------------------------ the keeper

template <class M>
void Rest::TellAllRanks(const M& letter) {
  for (Rank rank = 0; rank < spec_.placement().ranks(); ++rank) {
    driver_.service().Send(rank, letter);
  }
}

void Rest::KeepStarted(const letter::Started& started) {
  keeper_.started += started.samples;
  KeepEnded(started.before);
  WithholdIfDue();
}

// Tells rank 0 whenever another global batch has been computed; what is less is told at rest.
void Rest::KeepEnded(const letter::EndedStep& step) {
  keeper_.ended += step.samples;
  keeper_.stop |= step.stop != 0;
  keeper_.finite &= step.finite != 0;
  keeper_.told.samples += step.samples;
  keeper_.told.loss_sum += step.loss_sum;
  if (keeper_.told.samples >= spec_.rule.batch) TellRootOfSteps();
}

void Rest::TellRootOfSteps() {
  const Told told = std::exchange(keeper_.told, {});
  driver_.service().Send(0, letter::TellRoot{keeper_.ended, told.samples, told.loss_sum});
}

void Rest::WithholdIfDue() {
  if (keeper_.withholding) return;
  if (keeper_.started < keeper_.next && !keeper_.stop && keeper_.finite) return;
  keeper_.withholding = true;
  for (ActorId worker = 0; worker < spec_.placement().workers; ++worker) {
    driver_.service().Send(spec_.placement().RankOf(worker), letter::Withhold{});
  }
}

void Rest::KeepWithheld(const letter::Withheld& withheld) {
  if (spec_.synchronous()) {
    keeper_.ended = withheld.samples_applied;
    keeper_.stop |= withheld.before.stop != 0;
    keeper_.finite &= withheld.before.finite != 0;
  } else {
    KeepEnded(withheld.before);
  }
  if (++keeper_.withheld == spec_.placement().workers) StartCount();
}

void Rest::StartCount() {
  ++keeper_.round;
  keeper_.counted = 0;
  keeper_.sent = keeper_.received = 0;
  keeper_.idle = true;
  TellAllRanks(letter::Count{keeper_.round});
}

void Rest::KeepCounted(const letter::Counted& counted) {
  DT_CHECK(counted.round == keeper_.round) << counted.round << " instead of " << keeper_.round;
  keeper_.sent += counted.sent;
  keeper_.received += counted.received;
  keeper_.idle &= counted.idle != 0;
  keeper_.finite &= counted.finite != 0;  // also what the last pushes did at the servers
  if (++keeper_.counted < spec_.placement().ranks()) return;
  // One round may have counted a letter's sending before and its reading behind it: only when
  // nothing was sent between two rounds do the sums belong to one time.
  const bool settled = keeper_.idle && keeper_.sent == keeper_.received;
  if (!settled || keeper_.sent != keeper_.sent_before) {
    keeper_.sent_before = settled ? keeper_.sent : -1;
    return StartCount();
  }
  Settle();
}

// All is quiet: the actors get a word, whose letters are waited for; then there is rest.
void Rest::Settle() {
  const bool last = keeper_.ended >= spec_.rule.last_samples && !spec_.rule.ended_early;
  if (!keeper_.told_quiet) {
    keeper_.told_quiet = true;
    keeper_.sent_before = -1;
    TellAllRanks(letter::AllQuiet{keeper_.ended, last});
    return StartCount();
  }
  if (keeper_.told.samples > 0) TellRootOfSteps();
  const letter::AtRest rest{keeper_.ended, keeper_.stop, keeper_.finite};
  // The next rest begins with nothing but the counts that never go back.
  keeper_ = {.next = spec_.rule.NextAfter(keeper_.ended),
             .started = keeper_.ended,
             .ended = keeper_.ended,
             .round = keeper_.round};
  TellAllRanks(rest);
}

}  // namespace dtrain
