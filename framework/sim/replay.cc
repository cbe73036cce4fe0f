#include "framework/sim/replay.h"

#include <algorithm>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/exchange/rank_parts.h"

namespace dtrain {
namespace {

class NoClock : public Clock {
 public:
  Nanos Now() const override { return 0; }
};

// Supplies the times (kTime) that follow an event in the log.
class LoggedTimes : public EventTimes {
 public:
  explicit LoggedTimes(const std::vector<Event>& events) : events_(events) {}

  // Call it before the event with index `event` is carried out.
  void Begin(size_t event) { next_ = event + 1; }
  Nanos Next() override {
    if (next_ == events_.size() || events_[next_].kind != EventKind::kTime) {
      throw RunFileError("the record does not fit its run: a time is missing");
    }
    return events_[next_++].value;
  }
  // Returns the index of the first event that was not used.
  size_t next() const { return next_; }

 private:
  const std::vector<Event>& events_;
  size_t next_ = 0;
};

// HeldChannel is a channel whose messages wait until the log has the event of their arrival.
class HeldChannel : public MessageChannel {
 public:
  explicit HeldChannel(std::vector<HeldChannel*>& all) : all_(all) {}

  void Send(Rank to, Envelope envelope) override {
    all_[to]->held_[envelope.from].push_back(std::move(envelope));
  }
  std::optional<Envelope> Next() override { return std::exchange(released_, std::nullopt); }
  bool Busy() const override { return false; }
  Collective::Traffic traffic() const override { return {}; }

  // Releases the next message from `from`.  Returns false if there is none yet.
  bool Release(ActorId from) {
    std::deque<Envelope>& envelopes = held_[from];
    if (envelopes.empty()) return false;
    released_ = std::move(envelopes.front());
    envelopes.pop_front();
    return true;
  }

 private:
  std::vector<HeldChannel*>& all_;
  std::map<ActorId, std::deque<Envelope>> held_;  // by sender
  std::optional<Envelope> released_;
};

ExchangeSpec EachActorApart(ExchangeSpec spec) {
  spec.actors.placement.apart = true;
  spec.rank_nodes.clear();  // they belong to the original ranks
  spec.record = spec.timeline = false;
  return spec;
}

// Runs each actor on a rank of its own, which is possible because actors on one rank share no
// vector.
class Replayer {
 public:
  Replayer(const SimulationSetup& setup, const std::vector<std::vector<Event>>& logs);

  std::vector<float> Run();

 private:
  struct Part {
    HeldChannel* channel = nullptr;  // owned by `rank`
    std::unique_ptr<RankParts> rank;
    std::vector<Event> events;
    std::unique_ptr<LoggedTimes> times;  // the times in `events`
    size_t next = 0;
    int64_t steps = 0;  // steps of a worker
  };

  void AddActor(ActorId actor);
  bool Advance(Part& part);
  bool TryEvent(Part& part, const Event& event);
  bool ComputeStep(Part& part, Nanos compute);
  std::string WhereItStopped() const;

  const ExchangeSpec spec_;
  GradientSource& source_;
  const NoClock clock_;
  BlobPools pools_;
  const VectorSlice initial_;
  std::vector<HeldChannel*> boxes_;
  std::deque<Part> parts_;  // by actor; a deque, since parts must not move
};

Replayer::Replayer(const SimulationSetup& setup, const std::vector<std::vector<Event>>& logs)
    : spec_(EachActorApart(setup.exchange)),
      source_(*setup.source),
      pools_(source_.Memory()),
      initial_{pools_.CopyOf(spec_.start.weights), 0, {0, spec_.size()}} {
  const int actors = spec_.placement().actors();
  for (ActorId actor = 0; actor < actors; ++actor) AddActor(actor);
  for (const std::vector<Event>& log : logs) {
    for (const Event& event : log) {
      if (event.actor >= actors || (event.kind == EventKind::kMessage && event.value >= actors)) {
        throw RunFileError(
            fmt::format("the record has events of actor {}, but the run had {} actors",
                        std::max<int64_t>(event.actor, event.value), actors));
      }
      parts_[event.actor].events.push_back(event);
    }
  }
}

void Replayer::AddActor(ActorId actor) {
  Part& part = parts_.emplace_back();
  auto channel = std::make_unique<HeldChannel>(boxes_);
  part.channel = channel.get();
  boxes_.push_back(part.channel);
  part.times = std::make_unique<LoggedTimes>(part.events);
  RankDependencies dependencies{.clock = &clock_,
                                .event_times = part.times.get(),
                                .pools = &pools_,
                                .channel = std::move(channel),
                                .weights = initial_};
  part.rank = std::make_unique<RankParts>(spec_, actor, std::move(dependencies));
}

std::vector<float> Replayer::Run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Part& part : parts_) {
      while (Advance(part)) moved = true;
    }
  }
  const bool all = std::all_of(parts_.begin(), parts_.end(),
                               [](const Part& part) { return part.next == part.events.size(); });
  if (!all) throw RunFileError("the record does not fit its run: " + WhereItStopped());
  std::vector<float> weights(static_cast<size_t>(spec_.size()));
  for (Part& part : parts_) PutMasters(spec_, part.rank->driver, weights.data());
  return weights;
}

// Carries out the next event of this actor, and its effects.  Returns false if it must wait for
// other actors.
bool Replayer::Advance(Part& part) {
  if (part.next == part.events.size()) return false;
  part.times->Begin(part.next);
  if (!TryEvent(part, part.events[part.next])) return false;
  while (part.rank->driver.Progress()) {
  }
  part.next = part.times->next();
  part.rank->driver.TakeEnded();
  return true;
}

bool Replayer::TryEvent(Part& part, const Event& event) {
  switch (event.kind) {
    case EventKind::kBegin:
      part.rank->driver.Begin();
      return true;
    case EventKind::kEnd:
      return ComputeStep(part, event.value);
    case EventKind::kMessage:
      return part.channel->Release(static_cast<ActorId>(event.value));
    case EventKind::kTimer:
      return part.rank->driver.FireTimer(static_cast<int>(event.value));
    case EventKind::kQuiet:
      part.rank->driver.NotifyQuiescent({event.value, event.last});
      return true;
    case EventKind::kTime:  // the event before it did not use it, so the record does not fit
      return false;
  }
  return false;
}

bool Replayer::ComputeStep(Part& part, Nanos compute) {
  Driver& driver = part.rank->driver;
  if (!driver.TakeStarted()) return false;
  source_.Begin(driver.worker(), part.steps++, driver.weights(), driver.gradients());
  StepReport report = source_.End(driver.worker());
  report.compute = compute;
  driver.ReadyLast(spec_.layer_gradients.ranges.back(), report);
  return true;
}

std::string Replayer::WhereItStopped() const {
  for (size_t actor = 0; actor < parts_.size(); ++actor) {
    const Part& part = parts_[actor];
    if (part.next == part.events.size()) continue;
    return fmt::format("actor {} waits for event {} of {} ({})", actor, part.next + 1,
                       part.events.size(), part.rank->driver.Describe());
  }
  return "";
}

}  // namespace

std::vector<float> Replay(const SimulationSetup& setup,
                          const std::vector<std::vector<Event>>& logs) {
  return Replayer(setup, logs).Run();
}

}  // namespace dtrain
