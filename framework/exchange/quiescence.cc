#include "framework/exchange/quiescence.h"

#include <utility>

#include "framework/core/check.h"
#include "framework/core/state_record.h"

namespace dtrain {
namespace {

// Every run has the rank of a coordinator, if no coordinator.
Rank LeaderRank(const Placement& placement) { return placement.RankOf(placement.CoordinatorId()); }

}  // namespace

Quiescence::Quiescence(Driver& driver, const ExchangeSpec& spec, Rank rank)
    : driver_(driver),
      spec_(spec),
      leader_rank_(LeaderRank(spec.placement())),
      next_(spec.rule.NextAfter(spec.start.samples_applied)) {
  HandleMessages();
  const int64_t begin = spec.start.samples_applied;
  state_.samples_applied = progress_.samples_applied = begin;
  leader_.next = next_;
  leader_.started = leader_.ended = begin;
  // A run that is resumed at its end has nothing left to start.
  if (begin < spec.rule.last_samples || spec.start.over) return;
  if (local()) {
    Reach(state_);
  } else if (driver_.HasWorker()) {
    Withdraw();
  }
}

void Quiescence::HandleMessages() {
  Service& service = driver_.service();
  service.On<control::Hold>([this](const control::Hold&, Rank) {
    if (driver_.HasWorker()) Withdraw();
  });
  service.On<control::Count>([this](const control::Count& count, Rank) { AnswerCount(count); });
  service.On<control::AllQuiescent>([this](const control::AllQuiescent& quiescent, Rank) {
    driver_.NotifyQuiescent({quiescent.samples_applied, quiescent.last != 0});
  });
  service.On<control::AtBoundary>([this](const control::AtBoundary& boundary, Rank) {
    driver_.Hold(true);
    Reach({boundary.samples_applied, boundary.stop != 0, boundary.finite != 0});
  });
  service.On<control::ReportToRoot>([this](const control::ReportToRoot& news, Rank) {
    progress_.samples_applied = news.samples_applied;
    progress_.samples += news.samples;
    progress_.loss_sum += news.loss_sum;
  });
  service.On<control::Started>(
      [this](const control::Started& started, Rank) { KeepStarted(started); });
  service.On<control::Held>([this](const control::Held& held, Rank) { KeepHeld(held); });
  service.On<control::Gone>([this](const control::Gone& gone, Rank) {
    driver_.NoteGone(static_cast<ActorId>(gone.worker));
  });
  service.On<control::Counted>(
      [this](const control::Counted& counted, Rank) { KeepCounted(counted); });
}

// ------------------------------------------------------------------ a worker's rank

void Quiescence::StepStarts(int64_t samples) {
  if (spec_.traits().lockstep) return;
  driver_.service().Send(leader_rank_, control::Started{samples, std::exchange(ended_, {})});
}

void Quiescence::StepEnded() {
  const StepOutcome& outcome = driver_.outcome();
  ended_ = {outcome.samples, outcome.loss_sum, outcome.stop, outcome.finite};
  if (!spec_.traits().lockstep) {
    if (driver_.held()) SendHeld();
    return;
  }
  const int64_t samples = driver_.samples_applied();
  const bool stop = outcome.stop && !outcome.alone;
  const bool finite = outcome.finite || outcome.alone;
  if (samples < next_ && !stop && finite) return;
  next_ = spec_.rule.NextAfter(samples);
  if (local()) {
    driver_.Hold(true);
    Reach({samples, stop, finite});
  } else {
    Withdraw();
  }
}

// The leader learns of the death before it counts, since messages between two ranks stay in order.
void Quiescence::Died() {
  driver_.TellNode();
  driver_.service().Send(leader_rank_, control::Gone{driver_.worker()});
  if (driver_.held()) SendHeld();
}

// A step that was admitted during the previous boundary starts when that boundary is left.  The next
// Hold may arrive before StepStarts is called for it.
void Quiescence::Withdraw() {
  driver_.Hold(true);
  if (!driver_.Stepping()) SendHeld();
}

void Quiescence::SendHeld() {
  if (said_held_) return;
  said_held_ = true;
  driver_.service().Send(leader_rank_,
                         control::Held{std::exchange(ended_, {}), driver_.samples_applied()});
}

void Quiescence::Reach(const BoundaryState& state) {
  state_ = state;
  reached_ = true;
}

void Quiescence::VisitProgress(StateVisitor& visitor) {
  visitor.Int("told_samples_applied", progress_.samples_applied);
  visitor.Int("told_samples", progress_.samples);
  VisitDouble(visitor, "told_loss_sum", progress_.loss_sum);
}

void Quiescence::Leave() {
  reached_ = said_held_ = false;
  driver_.timers().Hold(false);
  driver_.Hold(false);
}

// From now on no timer fires and no step begins until the run leaves the boundary.
void Quiescence::AnswerCount(const control::Count& count) {
  driver_.timers().Hold(true);
  // The two counts belong together: a message that is being handled is counted as received, and the
  // messages that it causes are still effects or are counted as sent.
  const Mailbox& mailbox = driver_.mailbox();
  driver_.service().Send(leader_rank_,
                         control::Counted{count.round, mailbox.sent(), mailbox.received(),
                                          driver_.effects().empty(), driver_.finite()});
}

// ------------------------------------------------------------------ the leader

template <class M>
void Quiescence::SendToAllRanks(const M& envelope) {
  for (Rank rank = 0; rank < spec_.placement().ranks(); ++rank) {
    driver_.service().Send(rank, envelope);
  }
}

void Quiescence::KeepStarted(const control::Started& started) {
  leader_.started += started.samples;
  KeepEnded(started.before);
  HoldIfDue();
}

// Reports to rank 0 after each global batch that was computed.  The remainder is reported at a
// boundary.
void Quiescence::KeepEnded(const control::EndedStep& step) {
  leader_.ended += step.samples;
  leader_.stop |= step.stop != 0;
  leader_.finite &= step.finite != 0;
  leader_.progress.samples += step.samples;
  leader_.progress.loss_sum += step.loss_sum;
  if (leader_.progress.samples >= spec_.rule.batch) ReportStepsToRoot();
}

void Quiescence::ReportStepsToRoot() {
  const Progress progress = std::exchange(leader_.progress, {});
  driver_.service().Send(0,
                         control::ReportToRoot{leader_.ended, progress.samples, progress.loss_sum});
}

void Quiescence::HoldIfDue() {
  if (leader_.holding) return;
  if (leader_.started < leader_.next && !leader_.stop && leader_.finite) return;
  leader_.holding = true;
  for (ActorId worker = 0; worker < spec_.placement().workers; ++worker) {
    driver_.service().Send(spec_.placement().RankOf(worker), control::Hold{});
  }
}

void Quiescence::KeepHeld(const control::Held& held) {
  if (spec_.traits().lockstep) {
    leader_.ended = held.samples_applied;
    leader_.stop |= held.before.stop != 0;
    leader_.finite &= held.before.finite != 0;
  } else {
    KeepEnded(held.before);
  }
  if (++leader_.held == spec_.placement().workers) StartCount();
}

void Quiescence::StartCount() {
  ++leader_.round;
  leader_.counted = 0;
  leader_.sent = leader_.received = 0;
  leader_.idle = true;
  SendToAllRanks(control::Count{leader_.round});
}

void Quiescence::KeepCounted(const control::Counted& counted) {
  DT_CHECK(counted.round == leader_.round) << counted.round << " instead of " << leader_.round;
  leader_.sent += counted.sent;
  leader_.received += counted.received;
  leader_.idle &= counted.idle != 0;
  leader_.finite &= counted.finite != 0;  // includes the servers' updates after the last pushes
  if (++leader_.counted < spec_.placement().ranks()) return;
  // Ranks are counted at different times, so one round may miss that a message was sent and still
  // count it as received.  The sums belong to one moment only if no message was sent between two
  // rounds.
  const bool settled = leader_.idle && leader_.sent == leader_.received;
  if (!settled || leader_.sent != leader_.sent_before) {
    leader_.sent_before = settled ? leader_.sent : -1;
    return StartCount();
  }
  Settle();
}

// Called when all is quiescent.  The first time it notifies the actors, whose messages are then
// counted again; the second time the boundary is reached.
void Quiescence::Settle() {
  const bool last = leader_.ended >= spec_.rule.last_samples && !spec_.rule.ended_early;
  if (!leader_.notified) {
    leader_.notified = true;
    leader_.sent_before = -1;
    SendToAllRanks(control::AllQuiescent{leader_.ended, last});
    return StartCount();
  }
  if (leader_.progress.samples > 0) ReportStepsToRoot();
  const control::AtBoundary boundary{leader_.ended, leader_.stop, leader_.finite};
  // Only counts that never decrease are kept for the next boundary.
  leader_ = {.next = spec_.rule.NextAfter(leader_.ended),
             .started = leader_.ended,
             .ended = leader_.ended,
             .round = leader_.round};
  SendToAllRanks(boundary);
}

}  // namespace dtrain
