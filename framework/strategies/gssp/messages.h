// What the workers, group servers and the coordinator of GSSP tell each other (gssp.md 3.6).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain::gssp {

// Worker to the server of its group, with a gradient: "and send me your weights when I may start the
// next step".
struct Push {
  static constexpr int kKind = 1;
  int64_t samples = 0;
  DTRAIN_FIELDS(samples)
};

constexpr int64_t kUnknown = -1;

// Server to worker, with the weights: "you may start".
struct Weights {
  static constexpr int kKind = 2;
  int64_t held = kUnknown;  // ns that the request was kept, by the server's clock
  DTRAIN_FIELDS(held)
};

// Server to server, with the sum of the gradients that it got since the last one.
struct Exchange {
  static constexpr int kKind = 3;
  int64_t gradients = 0;
  int64_t samples = 0;
  DTRAIN_FIELDS(gradients, samples)
};

// Worker to coordinator, at a boundary: how long its steps take, ns, without waiting for admission.
struct Stats {
  static constexpr int kKind = 4;
  int64_t compute = kUnknown;    // kUnknown: not measured yet
  int64_t transfers = kUnknown;  // of its gradient there, and of the weights back, while others of
                                 // the group sent theirs; kUnknown: not measured since its density
                                 // changed
  int64_t steps = 0;             // global batches of the run so far, of all workers together
  int64_t epochs = 0;            // whole ones, the same
  DTRAIN_FIELDS(compute, transfers, steps, epochs)
};

// Coordinator to all servers and workers: the groups from here on.
struct Regroup {
  static constexpr int kKind = 5;
  int64_t number = 0;              // 1, 2, ...
  std::vector<int64_t> server_of;  // by worker
  DTRAIN_FIELDS(number, server_of)
};

// The server that a worker leaves to the one that it joins.
struct Handover {
  static constexpr int kKind = 6;
  int64_t number = 0;  // of the Regroup
  int64_t worker = 0;
  int64_t behind = 0;   // updates between the weights that the worker has and the newest ones
  int64_t waiting = 0;  // its request for weights was kept
  DTRAIN_FIELDS(number, worker, behind, waiting)
};

// Coordinator to worker, at a boundary: the density of its gradients from here on (compress: gdtopk).
struct Density {
  static constexpr int kKind = 7;
  double density = 1;
  DTRAIN_FIELDS(density)
};

// Worker to the servers of all groups, at a boundary, with its residual.
struct Flush {
  static constexpr int kKind = 8;
  DTRAIN_FIELDS()
};

// Server to server, with its weights (exchange: averaging).
struct Replica {
  static constexpr int kKind = 9;
  int64_t members = 0;  // workers of its group, which may be another by the time this arrives
  DTRAIN_FIELDS(members)
};

// How long a step's transfers take by themselves.  Coordinator to all servers, at a boundary: find it out.
// Server to a worker of its group with weights, and back with as much: one worker at a time.
struct Probe {
  static constexpr int kKind = 10;
  DTRAIN_FIELDS()
};

// Server to coordinator, at a boundary: what it has learned so.
struct Probed {
  static constexpr int kKind = 11;
  std::vector<int64_t> alone;  // by worker: ns there and back; kUnknown: of another group
  DTRAIN_FIELDS(alone)
};

}  // namespace dtrain::gssp
