// RandomWorld: all actors of one protocol in memory, in a random but repeatable history with jitter, stragglers, pauses
// and late messages, checked by an Oracle.
//
// Messages of a pair stay in order; any other message may overtake any other.  One seed gives one history.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/strategies/strategy.h"
#include "tests/strategies/oracle.h"
#include "tests/strategies/symbolic_vectors.h"

namespace dtrain {

class RandomWorld {
 public:
  RandomWorld(const Scenario& scenario, uint64_t seed);
  virtual ~RandomWorld() = default;

  // Runs to the end, or to the first broken rule.  Returns that rule, or "".
  std::string Run();

  const std::string& history() const { return history_; }
  // Now and then an actor is saved, created again and loaded, which must not change the history.
  void ReloadActors() { reload_ = true; }

 protected:
  // Tests override these to plant bugs.
  virtual bool Loses(const Update&) { return false; }
  virtual bool Loses(ActorId /*from*/, ActorId /*to*/, const Message&) { return false; }
  // Called after a worker has compressed.
  virtual void Spoil(Parts& /*residual*/, Parts& /*out*/) {}

 private:
  class ActorEffects;
  enum class What { kBegin, kEnd, kMessage };
  struct Event {
    Nanos time = 0;
    int64_t sequence = 0;
    What what = What::kBegin;
    ActorId actor = 0;
    ActorId from = 0;
    Message message;
    Parts parts;
    bool operator>(const Event& other) const {
      return std::pair(time, sequence) > std::pair(other.time, other.sequence);
    }
  };

  void Handle(Event& event);
  void Post(Nanos time, What what, ActorId actor, ActorId from = 0, Message message = {},
            Parts parts = {});
  void Send(ActorId from, ActorId to, Message message, Parts parts);
  void BeginLater(ActorId worker);
  Nanos StepTime(ActorId worker);
  Nanos Latency();
  uint64_t Draw(uint64_t bound) { return random_.Below(draws_++, bound); }
  void Reload(ActorId actor);
  // Returns whether a gradient is sent now.  It has its own random stream, so that the rest of the history does not
  // change.
  bool Picks() { return picks_.Below(picked_++, 2) == 0; }

  const Scenario scenario_;
  const Random random_;
  uint64_t draws_ = 0;
  const Random reloads_;
  const Random picks_;
  uint64_t picked_ = 0;  // number of draws so far
  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<SymbolicVectors> vectors_;
  Oracle oracle_;

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::pair<ActorId, ActorId>, Nanos> last_arrival_;
  Nanos now_ = 0;
  int64_t sequence_ = 0;
  std::vector<int64_t> begun_;  // by worker: steps begun
  int64_t all_begun_ = 0;
  std::string history_;
  bool reload_ = false;
};

}  // namespace dtrain
