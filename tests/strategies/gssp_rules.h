// GsspRules: the rules of GSSP (gssp.md 8) as they can be seen from outside, held against a random
// history.  They keep books of their own - clocks, groups, what each server has applied, what each
// worker has kept back - and trust no actor.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/gssp/options.h"
#include "framework/strategies/placement.h"
#include "tests/strategies/world.h"

namespace dtrain::gssp {

struct Case {
  world::Scenario scenario;
  GsspOptions options;
  bool compresses = false;
  bool flushes = false;  // at the end of each epoch
};

// What histories have come to, so that a test can see that they get anywhere.
struct Coverage {
  int64_t regroups = 0, flushes = 0, handovers = 0, waiting_handovers = 0, blends = 0;
};

class GsspRules : public world::Rules {
 public:
  GsspRules(const Case& run, const Placement& placement);

  void Started(ActorId worker, world::Term step, const world::Parts& weights) override;
  void Sent(ActorId from, ActorId to, const Message& message, const world::Parts& parts) override;
  void Reached(ActorId to, ActorId from, const Message& message, const world::Parts&) override;
  void Applied(ActorId actor, int, const world::Content& sum, const Update& update) override;
  void Blended(ActorId actor, const world::Content& arrived, double share) override;
  void Settled(ActorId actor) override;
  void Quiescent(const QuiescentState& quiescent) override;
  void AfterBoundary(const QuiescentState& quiescent) override;
  void Finished(const ProtocolReport& report) override;

  static Coverage coverage;  // of all histories since it was cleared

 private:
  using GradientId = std::pair<int, int64_t>;  // worker and clock
  using Groups = std::vector<int64_t>;         // server by worker

  struct Worker {
    int64_t clock = 0;       // as the server of its group counts
    int at = 0;              // that server; -1: handed over, and not there yet
    int pushes_to = 0;       // the server that it believes in
    bool asked = false;      // and has no answer
    bool waits = false;      // its request has reached a server
    int64_t pushed = 0;      // gradients
    int flushes = 0;         // messages, at this boundary
    std::set<int64_t> kept;  // clocks of the gradients that are in its residual
  };
  struct Server {
    Groups groups;           // as it knows them
    Groups told;             // by the message that it handles; empty: none
    int64_t regroup = 0;     // number
    std::vector<int> early;  // handed over before the Regroup
    int handles = 0;         // kind of the message
    int64_t arrived_of = 0;  // workers of the group whose weights it handles
    int64_t fresh = 0;       // samples that came with pushes and count with the next step
    int64_t fresh_gradients = 0;
    int64_t acc = 0, acc_samples = 0;         // gradients that it owes the others
    bool stepped = false, exchanged = false;  // by the event that is handled
    int64_t samples = 0;                      // that it has applied
    double mass = 0;                          // of its weights
    std::set<GradientId> applied;
  };

  bool Gradients() const { return run_.options.between == Between::kGradients; }
  bool Synchronous() const { return run_.options.inside == Inside::kBsp; }
  Groups FirstGroups() const;
  int64_t Members(int server) const;
  bool HasOthers(int server) const;
  int64_t Lead(int worker) const;
  bool MayWait(int server, int worker) const;
  void Join(int worker, int server);
  void JoinEarly(int server);
  void SeesWeights(int number, int to, const world::Parts& parts);
  void SeesPush(ActorId from, int server, const Push& push, const world::Parts& parts);
  void SeesExchange(int server, const world::Parts& parts, const Exchange* exchange);
  void SeesFlush(ActorId from, const world::Parts& parts);
  void ReachedServer(Server& server, int number, const Message& message, ActorId from);
  double WeightOf(const Server& server, int number) const;
  void CheckGroups(const Groups& groups);
  void CheckMass(int server, const world::Parts& parts);
  void CheckAllAreSomewhere();

  const Case run_;
  const Placement placement_;
  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  Groups last_groups_;
  int64_t epochs_ = 0;
  std::set<GradientId> applied_;  // by any server
  int64_t submitted_ = 0, submitted_samples_ = 0;
  int64_t flushed_ = 0;  // messages with residuals
  int64_t answered_ = 0;
  int groups_at_boundary_ = 0;  // when it began
  int64_t exchanges_ = 0, regroups_ = 0;
};

}  // namespace dtrain::gssp
