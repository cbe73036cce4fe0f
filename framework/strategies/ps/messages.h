// Defines the messages between the workers and servers of the parameter-server family.
//
// A worker's `clock` is the number of steps it has finished, a server's `version` the number of
// updates it has applied to its shard.
#pragma once

#include <cstdint>

#include "framework/strategies/message.h"

namespace dtrain::ps {

// A worker sends it to a server: the worker has finished `clock` steps and asks for the weights, to
// be sent when it may start the next step.
struct Pull {
  static constexpr int kKind = 1;
  int64_t clock = 0;

  DTRAIN_FIELDS(clock)
};

// A worker sends it to a server, with the shard's part of a gradient.  With `wants_weights` it is
// also a Pull.  A step then needs one round trip and, since both are one message, the weights that
// are returned contain the gradient.
struct Push {
  static constexpr int kKind = 2;
  int64_t clock = 0;    // steps finished, this one included
  int64_t version = 0;  // version of the weights that the gradient was computed from
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0;
  int64_t wants_weights = 0;

  DTRAIN_FIELDS(clock, version, samples, loss_sum, stop, wants_weights)
};

constexpr int64_t kNoStaleness = -1;

// A server sends it to a worker, with the shard's weights: the worker may start its next step.  In
// a synchronous run samples, loss_sum and stop are the sums over all workers, else zero.
struct Weights {
  static constexpr int kKind = 3;
  int64_t version = 0;
  int64_t staleness = kNoStaleness;  // of the worker's last push to this server; sent once
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0;

  DTRAIN_FIELDS(version, staleness, samples, loss_sum, stop)
};

}  // namespace dtrain::ps
