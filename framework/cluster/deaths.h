// Deaths: defines which workers and nodes of a simulated run die, and when (config key `cluster.deaths`).
//
//   deaths: [{worker: 5, at_step: 100}, {node: 2, at_seconds: 12}]
//
// The ranks of a node share a NIC, as everywhere in `cluster`.  Messages that a rank sent before its death arrive.
// Messages to it that are on their way or have not been read are lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct Death {
  static constexpr int64_t kNone = -1;

  int64_t worker = kNone;  // kNone: a node dies
  int64_t node = kNone;
  double at_seconds = 0;    // virtual time; used if at_step is kNone
  int64_t at_step = kNone;  // the worker dies after completing so many steps
  std::string where;        // "run.yaml:7:12"

  std::string Who() const;  // "worker 5"
};

// Reads the list.  Errors are noted at their keys.
std::vector<Death> ReadDeaths(config::Reader& cluster);

// An error in the list of deaths for these actors, on nodes of `per_node` ranks.
struct DeathError {
  size_t index = 0;  // index in the list
  std::string what, hint;
};
std::vector<DeathError> CheckDeaths(const std::vector<Death>& deaths, const Placement& placement,
                                    int per_node);

// Throws ConfigError if there are any deaths: runs of real processes cannot have them.
void RefuseDeaths(const std::vector<Death>& deaths);

// Returns the ranks that die.  If the rank of a dead worker has its node's actor, the whole node dies, since its other
// workers could no longer hand in their gradients.
std::vector<Rank> RanksOf(const Death& death, const Placement& placement, int per_node);

}  // namespace dtrain
