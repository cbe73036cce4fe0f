// One simulated run with numbers and faults, and a check of what the strategy guarantees.
//
// Every gradient is 1 at one position of its own and 0 elsewhere, so that the weights at the end show which gradients
// were applied.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/fault_schedule.h"

namespace dtrain {

// A run drawn from a seed: the strategy's keys, a cluster, and its length.
class FaultyRun {
 public:
  // "ps_ssp", or with a compressor after '+': "gssp+gdtopk".
  FaultyRun(const std::string& strategy, uint64_t seed);

  std::string Describe() const;  // "ps_ssp {servers: 2, ...}, 5 workers, seed 7"
  FaultSchedule Draw() const;    // draws faults for this run

  // Returns the first guarantee that was broken, or "".
  std::string Broken(const FaultSchedule& schedule) const;

  // The outcome of a run.
  struct Outcome {
    SimulationResult result;
    std::vector<int64_t> computed;  // gradients, by worker
    bool nan = false;               // one of the gradients had a NaN
  };
  // Throws if an actor waits for ever.
  Outcome Run(const FaultSchedule& schedule) const;
  int64_t staleness() const { return staleness_; }

 private:
  SimulationSetup Setup() const;
  std::string BrokenBy(const Outcome& outcome) const;
  std::string BrokenAccounts(const Outcome& outcome) const;
  std::string BrokenWeights(const Outcome& outcome) const;

  std::string name_, compress_, keys_;
  int workers_;
  int64_t steps_;  // per worker, approximately
  int64_t staleness_ = -1;
  uint64_t seed_;
  std::unique_ptr<Strategy> strategy_;
  ClusterConfig cluster_;
  bool chaptered_;  // the run has boundaries before its end
};

}  // namespace dtrain
