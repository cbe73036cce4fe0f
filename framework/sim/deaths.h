// Deaths: which workers and nodes of a simulated run die, and when (config key `cluster.deaths`).
//
//   deaths: [{worker: 5, at_step: 100}, {node: 2, at_seconds: 12}]
//
// A node is what shares a NIC, as everywhere in `cluster`.  What a rank has sent before it
// dies arrives; what is on its way to it, or has not been read, is lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct Death {
  static constexpr int64_t kNone = -1;

  int64_t worker = kNone;  // or
  int64_t node = kNone;
  double at_seconds = 0;    // virtual, where at_step is kNone
  int64_t at_step = kNone;  // steps that the worker completes first
  std::string where;        // "run.yaml:7:12"

  std::string Who() const;  // "worker 5"
};

// Reads the list.  Errors are noted at their keys.
std::vector<Death> ReadDeaths(config::Reader& cluster);

// What is wrong with them for these actors, on nodes of so many ranks.
struct DeathError {
  size_t index = 0;  // in the list
  std::string what, hint;
};
std::vector<DeathError> CheckDeaths(const std::vector<Death>& deaths, const Placement& placement,
                                    int per_node);

// For runs of real processes: throws ConfigError where there are any.
void RefuseDeaths(const std::vector<Death>& deaths);

// The ranks that die with it: a worker whose rank has its node's actor takes the whole node along,
// since the others have nobody left to hand their gradients to.
std::vector<Rank> RanksOf(const Death& death, const Placement& placement, int per_node);

}  // namespace dtrain
