// ClusterConfig: the machines on which a run is simulated, or whose speed a real run is paced to (config section
// `cluster`).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/cluster/deaths.h"
#include "framework/cluster/network_model.h"
#include "framework/config/reader.h"

namespace dtrain {

struct ClusterConfig {
  // Random pauses: a worker does nothing for a while before its step begins.
  struct Pauses {
    double probability = 0;  // probability of a pause in a step
    double seconds = 0;
  };

  double step_seconds = 0;  // least time of a worker's step
  // Holds one factor for each worker, or for each block of workers of equal size.
  std::vector<double> slowdown = {1};
  double jitter = 0;  // relative standard deviation of step times (noise.h)
  Pauses pauses;
  double gflops = 100;        // speed of a worker if no layer times are known
  double memory_gbyte_s = 8;  // speed of vector arithmetic, in bytes of the result
  NetworkModel network;       // includes per_node

  int per_node() const { return network.per_node; }
  bool per_node_given = false;  // the config gives it, not auto
  std::vector<Death> deaths;    // only in a simulation

  // Returns the factor of each worker.  Throws ConfigError if `workers` cannot be divided into blocks of equal size.
  std::vector<double> SlowdownOf(int workers) const;
};

// Reads all keys of `cluster` except `workers`, which the caller has read.  Errors are noted at their keys.  `slowdown`
// is compared with `workers` only if the config gives that: otherwise a launcher may still change it, and SlowdownOf
// checks it.
ClusterConfig ReadCluster(config::Reader& cluster, int workers);

}  // namespace dtrain
