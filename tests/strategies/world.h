// World: all actors of one protocol in memory, in a random but repeatable history with jitter, stragglers, pauses, late
// messages and boundaries, checked by Rules.
//
// Messages of a pair stay in order; any other message may overtake any other.  One seed gives one history.  Vectors
// record their content as symbols instead of numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/strategies/strategy.h"

namespace dtrain::world {

// A gradient in a sum, with its factor.
struct Term {
  int worker = 0;
  int64_t clock = 0;  // counts from 1
  double factor = 1;
};

// The content of a vector.  Weights: the number of updates, and of gradients weighted by their factors.  Gradients and
// sums: their terms in the order of addition.
struct Content {
  int64_t version = 0;
  double mass = 0;
  std::vector<Term> terms;
};

using Parts = std::map<int, Content>;  // by shard

// Actors that die together: a worker, or a node aggregator with all its workers.
struct Death {
  Nanos at = 0;
  std::vector<ActorId> actors;
};

struct Scenario {
  std::string strategy;  // config section
  std::string compress;  // config section; "": none
  int workers = 1;
  std::vector<int> node_of;  // empty: the strategy places the workers
  int64_t steps = 1;         // started by all workers together
  // Steps of all workers between two boundaries, in addition to the strategy's own boundaries.
  int64_t boundary_every = 0;
  int64_t epoch_steps = 0;  // of all workers; 0: no epochs
  int64_t drift_every = 0;  // steps of all workers until their speeds change; 0: never
  bool may_fail = false;
  std::vector<Death> deaths;  // in the order of their times
};

// Sees the events of a history.  The first broken rule ends it.
class Rules {
 public:
  virtual ~Rules() = default;

  virtual void Started(ActorId /*worker*/, Term /*step*/, const Parts& /*weights*/) {}
  virtual void Ended(ActorId /*worker*/, Term /*step*/) {}
  virtual void Sent(ActorId /*from*/, ActorId /*to*/, const Message&, const Parts&) {}
  virtual void Reached(ActorId /*to*/, ActorId /*from*/, const Message&, const Parts&) {}
  virtual void Applied(ActorId /*server*/, int /*shard*/, const Content& /*gradient*/,
                       const Update&) {}
  virtual void Died(ActorId) {}
  virtual void Blended(ActorId /*server*/, const Content& /*arrived*/, double /*share*/) {}
  // This actor has handled an event.
  virtual void Settled(ActorId) {}
  // All actors are quiescent; called again after the effects of the actors' OnQuiescent have been carried out.
  virtual void Quiescent(const QuiescentState&) {}
  virtual void AfterBoundary(const QuiescentState&) {}
  // Worker `worker` has requested a step and was not admitted.
  virtual void Waits(ActorId /*worker*/) {}
  virtual void Finished(const ProtocolReport&) {}

  const std::string& verdict() const { return verdict_; }

 protected:
  void Expect(bool holds, const std::string& rule) {
    if (!holds && verdict_.empty()) verdict_ = rule;
  }

 private:
  std::string verdict_;
};

class World {
 public:
  using MakeRules = std::function<std::unique_ptr<Rules>(const Placement&)>;

  World(const Scenario& scenario, const MakeRules& make_rules, uint64_t seed);
  ~World();

  // Runs to the end, or to the first broken rule.  Returns that rule, or "".
  std::string Run();

  const std::string& history() const { return history_; }
  const ProtocolReport& report() const { return report_; }  // at the end
  std::string LastOfHistory() const;                        // the last lines, for a failure message
  const Placement& placement() const { return setup_.placement; }
  // Now and then an actor is saved, created again and loaded, which must not change the history.
  void ReloadActors() { reload_ = true; }
  // Tests plant errors here: `loses` and `loses_update` return true for a message or an update to lose; with
  // `the_dead_count` false a dead node aggregator counts nothing.
  std::function<bool(ActorId from, ActorId to, const Message&)> loses;
  std::function<bool(ActorId server, const Update&)> loses_update;
  bool the_dead_count = true;

 private:
  class ActorEffects;
  class Vectors;
  enum class What { kBegin, kEnd, kMessage, kTimer, kGone };
  struct Event {
    Nanos time = 0;
    int64_t sequence = 0;
    What what = What::kBegin;
    ActorId actor = 0;
    ActorId from = 0;
    int timer = 0;
    Message message;
    Parts parts;
    bool operator>(const Event& other) const {
      return std::pair(time, sequence) > std::pair(other.time, other.sequence);
    }
  };

  void Handle(Event& event);
  std::optional<Event> Next();
  void Drain();
  void NotifyQuiescent(bool last);
  void Kill(const Death& death);
  void Post(Event event);
  void Send(ActorId from, ActorId to, Message message, Parts parts);
  void BeginLater(ActorId worker);
  void Start(ActorId worker);
  bool MayStart() const;
  int64_t NextBoundary() const;
  void GoOn();
  Nanos StepTime(ActorId worker);
  Nanos Latency();
  uint64_t Draw(uint64_t bound) { return random_.Below(draws_++, bound); }
  void Reload(ActorId actor);

  const Scenario scenario_;
  const Random random_;
  uint64_t draws_ = 0;
  const Random reloads_;
  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  Strategy::Boundaries boundaries_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<std::unique_ptr<Vectors>> vectors_;
  std::unique_ptr<Rules> rules_;

  using Queue = std::priority_queue<Event, std::vector<Event>, std::greater<>>;
  Queue events_;
  Queue timers_;
  std::map<std::pair<ActorId, ActorId>, Nanos> last_arrival_;
  Nanos now_ = 0;
  int64_t sequence_ = 0;
  std::vector<int64_t> begun_;    // by worker: steps begun
  std::vector<Nanos> step_time_;  // by worker: duration of its last step
  // By worker: its position when the run comes to a boundary.
  enum class Held { kNo, kBegin, kStart };
  std::vector<Held> held_;
  int64_t started_ = 0;  // steps started
  int64_t ended_ = 0;
  int64_t next_boundary_ = 0;
  bool quiet_ = false;  // no timer fires
  int64_t handled_ = 0;
  std::vector<bool> dead_;  // by actor
  size_t next_death_ = 0;
  std::string history_;
  ProtocolReport report_;
  bool reload_ = false;
};

}  // namespace dtrain::world
