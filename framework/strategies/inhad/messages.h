// What the workers, nodes and servers of InHAD tell each other (inhad.md 4).
//
// A `version` is the number of updates of the weights, the `base` of a gradient the version that it
// was computed from.  Server 0 is the Scheduler as well.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain::inhad {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // a version that never comes

// Worker to its node, with a gradient.
struct Submit {
  static constexpr int kKind = 1;
  int64_t base = 0;
  int64_t next = 0;  // the worker's next step begins with this version or a newer one
  int64_t samples = 0;
  DTRAIN_FIELDS(base, next, samples)
};

// Node to worker: a gradient has been added, and the memory that it stood in is free.
struct Taken {
  static constexpr int kKind = 2;
  DTRAIN_FIELDS()
};

// Node to Scheduler: the node's iteration number, IN, and what its staleness depends on.  One at
// most is on its way; the newest values follow.
struct In {
  static constexpr int kKind = 3;
  int64_t submitted = 0;         // gradients of its workers so far
  int64_t low_computing = 0;     // no worker computes, or will compute, with an older version
  int64_t low_pending = kNever;  // smallest base of the gradients that are not pulled yet
  DTRAIN_FIELDS(submitted, low_computing, low_pending)
};

// Scheduler to node: its IN was read, the next may follow.
struct Noted {
  static constexpr int kKind = 4;
  DTRAIN_FIELDS()
};

// Scheduler to the nodes of a round: send what you have.
struct Pull {
  static constexpr int kKind = 5;
  int64_t round = 0;
  int64_t version = 0;
  DTRAIN_FIELDS(round, version)
};

// Node to every server, with the server's range of the weighted sum of its gradients.  A node that
// has none says so to the Scheduler only.
struct Grad {
  static constexpr int kKind = 6;
  int64_t round = 0;
  int64_t count = 0;           // gradients in the sum
  int64_t dropped = 0;         // too old (late: drop), since the last one
  int64_t samples = 0;         // behind them
  std::vector<int64_t> bases;  // base, how many of it, base, ...
  DTRAIN_FIELDS(round, count, dropped, samples, bases)
};

// Scheduler to the other servers: whose sums make the next update.
struct Close {
  static constexpr int kKind = 7;
  int64_t count = 0;  // gradients in all of them
  int64_t samples = 0;
  std::vector<int64_t> members;  // node, the round of its sum, node, ...
  DTRAIN_FIELDS(count, samples, members)
};

// Server to Scheduler: it has made that update.
struct Applied {
  static constexpr int kKind = 8;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// Server to node, with its range of the weights; node to worker, with all of them.
struct Weights {
  static constexpr int kKind = 9;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// Node to Scheduler: all of this version is there.
struct Have {
  static constexpr int kKind = 10;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// Scheduler to the other servers: send this node your weights (broadcast: pulled).
struct Refresh {
  static constexpr int kKind = 11;
  int64_t node = 0;
  DTRAIN_FIELDS(node)
};

// --- where workers may die (ActorSetup::may_fail)

// Node to Scheduler: one of its workers has died, so many are left.
struct Fewer {
  static constexpr int kKind = 12;
  int64_t workers = 0;
  DTRAIN_FIELDS(workers)
};

// Scheduler to a node that it has heard nothing of for long: say IN, whatever is new.
struct Ask {
  static constexpr int kKind = 13;
  DTRAIN_FIELDS()
};

// Scheduler to the other servers, and to the node itself, should it live: it is given up.  No update
// takes gradients of it any more, and it gets no weights.
struct GiveUp {
  static constexpr int kKind = 14;
  int64_t node = 0;
  DTRAIN_FIELDS(node)
};

}  // namespace dtrain::inhad
