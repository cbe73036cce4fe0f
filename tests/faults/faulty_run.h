// One simulated run with numbers and faults, and whether what the strategy promises held in it.
//
// Every gradient is 1 at a place of its own and 0 elsewhere, so that the weights at the end show which were
// applied.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/fault_schedule.h"

namespace dtrain {

// What a seed makes of a strategy: its keys, a cluster, how long it trains.
class FaultyRun {
 public:
  // "ps_ssp", with a compressor behind '+' ("gssp+gdtopk").
  FaultyRun(const std::string& strategy, uint64_t seed);

  std::string Describe() const;  // "ps_ssp {servers: 2, ...}, 5 workers, seed 7"
  FaultSchedule Draw() const;    // faults for it

  // The first promise that was broken, "" for none.
  std::string Broken(const FaultSchedule& schedule) const;

  // What came of a run.
  struct Outcome {
    SimulationResult result;
    std::vector<int64_t> computed;  // gradients, by worker
    bool nan = false;               // one of them had a NaN
  };
  // Throws where somebody waits for ever.
  Outcome Run(const FaultSchedule& schedule) const;
  int64_t staleness() const { return staleness_; }

 private:
  SimulationSetup Setup() const;
  std::string BrokenBy(const Outcome& outcome) const;
  std::string BrokenAccounts(const Outcome& outcome) const;
  std::string BrokenWeights(const Outcome& outcome) const;

  std::string name_, compress_, keys_;
  int workers_;
  int64_t steps_;  // of each worker, about
  int64_t staleness_ = -1;
  uint64_t seed_;
  std::unique_ptr<Strategy> strategy_;
  ClusterConfig cluster_;
  bool chaptered_;  // boundaries on the way
};

}  // namespace dtrain
