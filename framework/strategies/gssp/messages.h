// Defines the messages between the workers, the group servers and the coordinator of GSSP (gssp.md
// 3.6).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain::gssp {

// A worker sends it to the server of its group, with a gradient.  It also requests the weights, to
// be sent when the worker may start its next step.
struct Push {
  static constexpr int kKind = 1;
  int64_t samples = 0;
  DTRAIN_FIELDS(samples)
};

constexpr int64_t kUnknown = -1;

// A server sends it to a worker, with the weights: the worker may start its next step.
struct Weights {
  static constexpr int kKind = 2;
  int64_t held = kUnknown;  // ns that the request waited, by the server's clock
  DTRAIN_FIELDS(held)
};

// A server sends it to another server, with the sum of its group's gradients since the last one.
struct GroupSync {
  static constexpr int kKind = 3;
  int64_t gradients = 0;
  int64_t samples = 0;
  DTRAIN_FIELDS(gradients, samples)
};

// A worker sends it to the coordinator, at a boundary, with its step times in ns, less the
// time that the server held its requests.
struct Stats {
  static constexpr int kKind = 4;
  int64_t compute = kUnknown;    // kUnknown: not measured yet
  int64_t transfers = kUnknown;  // of the gradient to the server and the weights back, under the
                                 // load of the other workers; kUnknown: not measured since the
                                 // density changed
  int64_t steps = 0;             // global batches of the run so far, of all workers together
  int64_t epochs = 0;            // complete epochs of the run so far
  DTRAIN_FIELDS(compute, transfers, steps, epochs)
};

// The coordinator sends it to all servers and workers, with the new groups.
struct Regroup {
  static constexpr int kKind = 5;
  int64_t number = 0;              // 1, 2, ...
  std::vector<int64_t> server_of;  // by worker
  DTRAIN_FIELDS(number, server_of)
};

// The server that a worker leaves sends it to the one that the worker joins.
struct Handover {
  static constexpr int kKind = 6;
  int64_t number = 0;  // number of the Regroup
  int64_t worker = 0;
  int64_t behind = 0;   // updates between the weights that the worker has and the newest ones
  int64_t waiting = 0;  // 1 if its request for weights was waiting
  DTRAIN_FIELDS(number, worker, behind, waiting)
};

// The coordinator sends it to a worker, at a boundary, with the density of its gradients from now
// on (compress: gdtopk).
struct Density {
  static constexpr int kKind = 7;
  double density = 1;
  DTRAIN_FIELDS(density)
};

// A worker sends it to the servers of all groups, at a boundary, with its residual.
struct Flush {
  static constexpr int kKind = 8;
  DTRAIN_FIELDS()
};

// A server sends it to another server, with its weights (exchange: averaging).
struct Replica {
  static constexpr int kKind = 9;
  int64_t members = 0;  // workers of its group when it was sent; may have changed on arrival
  DTRAIN_FIELDS(members)
};

// Measures the time of a step's transfers without contention.  The coordinator sends it to all
// servers at a boundary.  A server sends it, with weights, to the workers of its group, one at a
// time; the worker answers with a vector of the same size.
struct Probe {
  static constexpr int kKind = 10;
  DTRAIN_FIELDS()
};

// A server sends it to the coordinator, at a boundary, with the results of its probes.
struct Probed {
  static constexpr int kKind = 11;
  std::vector<int64_t> alone;  // by worker: ns of the round trip; kUnknown: of another group
  DTRAIN_FIELDS(alone)
};

}  // namespace dtrain::gssp
