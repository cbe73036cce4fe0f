// World: one protocol with all its actors in memory, in a random but repeatable history - jitter,
// stragglers, pauses, late messages, boundaries - under the eyes of Rules.
//
// Messages of a pair stay in order; otherwise anything may overtake anything.  One seed, one
// history.  Vectors have no numbers: what is in them is remembered instead.
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

// A gradient in a sum, with what it has been multiplied by.
struct Term {
  int worker = 0;
  int64_t clock = 0;  // the worker's first is 1
  double factor = 1;
};

// Of weights: how many updates they have had, and how many gradients that makes, each counted by what
// it was multiplied with.  Of gradients and sums: their terms, in the order in which they were added.
struct Content {
  int64_t version = 0;
  double mass = 0;
  std::vector<Term> terms;
};

using Parts = std::map<int, Content>;  // by shard

// Actors that die together: a worker, or a node with all its workers.
struct Death {
  Nanos at = 0;
  std::vector<ActorId> actors;
};

struct Scenario {
  std::string strategy;  // config section
  std::string compress;  // the same; "": none
  int workers = 1;
  std::vector<int> node_of;  // empty: as the strategy places them
  int64_t steps = 1;         // started by all workers together, in all
  // Steps of all workers between two boundaries, besides those of the strategy.
  int64_t boundary_every = 0;
  int64_t epoch_steps = 0;  // of all workers; 0: no epochs
  int64_t drift_every = 0;  // steps of all workers until their speeds are others; 0: never
  bool may_fail = false;
  std::vector<Death> deaths;  // in the order of their times
};

// What is seen of a history.  The first broken rule ends it.
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
  // An event has been handled by this actor.
  virtual void Settled(ActorId) {}
  // All is quiescent; and it is again, behind what the actors did about it.
  virtual void Quiescent(const QuiescentState&) {}
  virtual void AfterBoundary(const QuiescentState&) {}
  // Worker `worker` wants to start a step, and does not.
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

  // To the end, or to the first broken rule, which it returns ("" for none).
  std::string Run();

  const std::string& history() const { return history_; }
  const ProtocolReport& report() const { return report_; }  // at the end
  std::string LastOfHistory() const;                        // some lines, for a message
  const Placement& placement() const { return setup_.placement; }
  // Now and then an actor is saved, made anew and loaded, which must not change the history.
  void ReloadActors() { reload_ = true; }
  // Where a test plants an error: true for a message, or an update, that is to be lost; for a dead
  // node that counts nothing.
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
  std::vector<int64_t> begun_;    // by worker: steps
  std::vector<Nanos> step_time_;  // by worker: of its last one
  // By worker: where it stands when the run comes to a boundary.
  enum class Held { kNo, kBegin, kStart };
  std::vector<Held> held_;
  int64_t started_ = 0;  // steps
  int64_t ended_ = 0;
  int64_t next_boundary_ = 0;
  bool quiet_ = false;  // timers are silent
  int64_t handled_ = 0;
  std::vector<bool> dead_;  // by actor
  size_t next_death_ = 0;
  std::string history_;
  ProtocolReport report_;
  bool reload_ = false;
};

}  // namespace dtrain::world
