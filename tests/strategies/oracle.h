// Oracle: checks the rules of the ps protocols (Ho et al., NIPS 2013, section 3, and exactly-once application) from the
// externally visible behaviour of the actors.  It keeps its own records and does not trust the actors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/ps/messages.h"
#include "tests/strategies/symbolic_vectors.h"

namespace dtrain {

struct Scenario {
  std::string strategy;       // config section
  std::string compress = "";  // config section, "" for none
  int workers = 1;
  int64_t bound = 0;      // staleness bound; large for none
  int64_t bound_max = 0;  // larger than `bound` if the bound is dynamic
  bool synchronous = false;
  bool prefetch = false;
  bool share = true;
  bool damping = false;
  int64_t steps = 1;         // of each worker
  int64_t steps_in_all = 0;  // > 0: no step begins after this many steps of all workers
};

// Returns the lead that no worker may exceed.
inline int64_t LastBound(const Scenario& scenario) {
  return std::max(scenario.bound, scenario.bound_max);
}

class Oracle {
 public:
  Oracle(const Scenario& scenario, const Placement& placement);

  static StepReport ReportOf(Gradient step);  // what a worker reports of the step

  // Record visible events.  `server` counts from 0.
  void Started(int worker, const Parts& weights);
  void Pushed(int worker);  // its step has been computed
  void Ended(int worker, const StepOutcome& outcome);
  void Reached(int server, int worker, const Message& message);
  void Applied(int server, Content& master, const Content& gradient, const Update& update);
  void Answered(int server, int worker, const ps::Weights& weights);
  void Settled(int server);  // a server has handled a message; checks which workers must still wait
  void Finished(const ProtocolReport& report, std::vector<SymbolicVectors>& vectors);

  const std::string& verdict() const { return verdict_; }  // the first broken rule; "" for none

 private:
  struct Shard {
    std::vector<int64_t> pushed;  // by worker: gradients that have arrived here
    std::vector<bool> asked;      // has an unanswered request
    int64_t updates = 0;
    int64_t Lead(int worker) const;
  };

  void Expect(bool holds, const std::string& rule);
  bool MayWait(const Shard& shard, int worker) const;
  bool MustWait(const Shard& shard, int worker) const;
  void CheckContent(int worker, const Content& content);
  double ExpectedFactor(int64_t staleness) const;
  void CheckMass(int server, std::vector<SymbolicVectors>& vectors);
  void CheckReport(const ProtocolReport& report);

  const Scenario scenario_;
  const Placement placement_;
  std::vector<Shard> shards_;
  std::vector<int64_t> computed_;                  // by worker: steps
  std::map<std::pair<int, int64_t>, Parts> used_;  // by gradient: the weights it is computed from
  std::map<std::pair<int, int64_t>, int64_t> staleness_;
  int64_t lead_max_ = 0;
  std::string verdict_;
};

}  // namespace dtrain
