// GsspRules: checks the externally visible rules of GSSP (gssp.md 8) on a random history.  It keeps its own records -
// clocks, groups, the gradients applied by each server, the gradients in each worker's residual - and does not trust
// the actors.
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
  bool flushes = false;  // residuals are flushed at the end of each epoch
};

// What the histories covered, so that a test can check that all cases occur.
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

  static Coverage coverage;  // of all histories since it was last cleared

 private:
  using GradientId = std::pair<int, int64_t>;  // worker and clock
  using Groups = std::vector<int64_t>;         // server by worker

  struct Worker {
    int64_t clock = 0;       // as counted by its group's server
    int at = 0;              // that server; -1: handed over and not yet arrived
    int pushes_to = 0;       // the server that the worker pushes to
    bool asked = false;      // has an unanswered request
    bool waits = false;      // its request has reached a server
    int64_t pushed = 0;      // gradients pushed
    int flushes = 0;         // flush messages at this boundary
    std::set<int64_t> kept;  // clocks of the gradients in its residual
  };
  struct Server {
    Groups groups;           // as this server knows them
    Groups announced;        // sent with the message that is handled now; empty: none
    int64_t regroup = 0;     // its number
    std::vector<int> early;  // workers handed over before the Regroup arrived
    int handles = 0;         // kind of the message that is handled now
    int64_t arrived_of = 0;  // number of workers in the group whose weights are handled
    int64_t fresh = 0;       // samples of pushes that count with the next step
    int64_t fresh_gradients = 0;
    int64_t acc = 0, acc_samples = 0;  // gradients that the other groups have not received yet
    bool stepped = false, exchanged = false;  // by the event that is handled now
    int64_t samples = 0;                      // samples it has applied
    double mass = 0;                          // sum of the factors of its weights
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
  void SeesGroupSync(int server, const world::Parts& parts, const GroupSync* sync);
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
  int groups_at_boundary_ = 0;  // when the boundary began
  int64_t exchanges_ = 0, regroups_ = 0;
};

}  // namespace dtrain::gssp
