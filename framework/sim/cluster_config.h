// ClusterConfig: the machines that a run is simulated on, or paced as (config section `cluster`).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/reader.h"
#include "framework/sim/deaths.h"
#include "framework/sim/network_model.h"

namespace dtrain {

struct ClusterConfig {
  // Now and then a worker does nothing for a while, before its step begins.
  struct Pauses {
    double probability = 0;  // of one in a step
    double seconds = 0;
  };

  double step_seconds = 0;             // a step of a worker takes at least this long
  std::vector<double> slowdown = {1};  // one factor a worker, or one a block of equal size
  double jitter = 0;                   // relative deviation of step times (noise.h)
  Pauses pauses;
  double gflops = 100;        // of a worker, where no layer times are known
  double memory_gbyte_s = 8;  // vector arithmetic: bytes of the result
  NetworkModel network;       // with the ranks of a node

  int per_node() const { return network.per_node; }
  bool per_node_given = false;  // not auto
  std::vector<Death> deaths;    // in a simulation

  // The factor of each worker.  Throws ConfigError when `workers` are not blocks of equal size.
  std::vector<double> SlowdownOf(int workers) const;
};

// Reads all keys of `cluster` but `workers`, which has been read.  Errors are noted at their
// keys.  `slowdown` is compared with `workers` only where the config gives them: otherwise a
// launcher may still decide (SlowdownOf tells then).
ClusterConfig ReadCluster(config::Reader& cluster, int workers);

}  // namespace dtrain
