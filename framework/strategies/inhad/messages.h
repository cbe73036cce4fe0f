// Defines the messages between the workers, nodes and servers of InHAD (inhad.md 4).
//
// A `version` is a number of updates of the weights.  The `base` of a gradient is the version that
// it was computed from.  Server 0 is the Scheduler as well.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "framework/strategies/message.h"

namespace dtrain::inhad {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // a version that never comes

// A worker sends it to its node, with a gradient.
struct Submit {
  static constexpr int kKind = 1;
  int64_t base = 0;
  int64_t next = 0;  // the worker's next step uses this version or a newer one
  int64_t samples = 0;
  DTRAIN_FIELDS(base, next, samples)
};

// A node sends it to a worker: the gradient was added to a sum, and its memory is free.
struct Taken {
  static constexpr int kKind = 2;
  DTRAIN_FIELDS()
};

// A node sends it to the Scheduler, with the node's iteration number (IN) and the versions that
// staleness depends on.  At most one is in flight per node; the next one has the newest values.
struct In {
  static constexpr int kKind = 3;
  int64_t submitted = 0;         // gradients that its workers have submitted so far
  int64_t low_computing = 0;     // no worker computes, or will compute, with an older version
  int64_t low_pending = kNever;  // smallest base of the gradients that were not pulled yet
  DTRAIN_FIELDS(submitted, low_computing, low_pending)
};

// The Scheduler sends it to a node: its IN was received, the next may follow.
struct Noted {
  static constexpr int kKind = 4;
  DTRAIN_FIELDS()
};

// The Scheduler sends it to the nodes of a round, to request their gradients.
struct Pull {
  static constexpr int kKind = 5;
  int64_t round = 0;
  int64_t version = 0;
  DTRAIN_FIELDS(round, version)
};

// A node sends it to every server, with the server's range of the weighted sum of its gradients.  A
// node without gradients answers to the Scheduler only.
struct Grad {
  static constexpr int kKind = 6;
  int64_t round = 0;
  int64_t count = 0;           // gradients in the sum
  int64_t dropped = 0;         // gradients dropped since the last Grad, too old (late: drop)
  int64_t samples = 0;         // samples of the gradients in the sum
  std::vector<int64_t> bases;  // base, number of gradients with it, base, ...
  DTRAIN_FIELDS(round, count, dropped, samples, bases)
};

// The Scheduler sends it to the other servers, with the nodes whose sums make the next update, and
// those that do not get its weights because older ones are still on their way to them.
struct Close {
  static constexpr int kKind = 7;
  int64_t count = 0;  // gradients in all of these sums
  int64_t samples = 0;
  std::vector<int64_t> nodes;  // node, round of its sum or kNoWeights, node, ...
  DTRAIN_FIELDS(count, samples, nodes)

  static constexpr int64_t kNoWeights =
      0;  // this node has no sum in it and does not get the weights

  struct Sum {
    int node = 0;
    int64_t round = 0;
  };
  std::vector<Sum> Sums() const {
    std::vector<Sum> sums;
    for (size_t i = 0; i + 1 < nodes.size(); i += 2) {
      if (nodes[i + 1] != kNoWeights) sums.push_back({static_cast<int>(nodes[i]), nodes[i + 1]});
    }
    return sums;
  }
  bool Excludes(int node) const {
    for (size_t i = 0; i + 1 < nodes.size(); i += 2) {
      if (nodes[i] == node) return nodes[i + 1] == kNoWeights;
    }
    return false;
  }
};

// A server sends it to the Scheduler: the server has made the update to `version`.
struct Applied {
  static constexpr int kKind = 8;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// A server sends it to a node, with the server's range of the weights; a node sends it to a worker,
// with all weights.
struct Weights {
  static constexpr int kKind = 9;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// A node sends it to the Scheduler: the node has received the whole weights of this version.
struct Have {
  static constexpr int kKind = 10;
  int64_t version = 0;
  DTRAIN_FIELDS(version)
};

// The Scheduler sends it to the other servers, to request their weights for this node (broadcast:
// pulled).
struct Refresh {
  static constexpr int kKind = 11;
  int64_t node = 0;
  DTRAIN_FIELDS(node)
};

// --- messages of runs in which workers may die (ActorSetup::may_fail)

// A node sends it to the Scheduler: one of its workers has died, `workers` are left.
struct Fewer {
  static constexpr int kKind = 12;
  int64_t workers = 0;
  DTRAIN_FIELDS(workers)
};

// The Scheduler sends it to a node that has not sent anything for long, to request an IN, even
// without news.
struct Ask {
  static constexpr int kKind = 13;
  DTRAIN_FIELDS()
};

// The Scheduler sends it to the other servers, and to the node itself in case it lives: the node is
// given up.  Its gradients are not used any more, and it gets no weights.
struct GiveUp {
  static constexpr int kKind = 14;
  int64_t node = 0;
  DTRAIN_FIELDS(node)
};

}  // namespace dtrain::inhad
