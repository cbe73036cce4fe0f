// What the workers and servers of the parameter-server family tell each other.
//
// A worker's `clock` is the number of steps it has finished, a server's `version` the number of
// updates it has applied to its shard.
#pragma once

#include <cstdint>

#include "framework/strategies/message.h"

namespace dtrain::ps {

// Worker to server: "I have finished `clock` steps; send me your weights when I may start the
// next".
struct Pull {
  static constexpr int kKind = 1;
  int64_t clock = 0;

  DTRAIN_FIELDS(clock)
};

// Worker to server, with the shard's part of a gradient.  With `wants_weights` it is a Pull as
// well: one round trip a step, and since both are one message, the weights that come back contain
// it.
struct Push {
  static constexpr int kKind = 2;
  int64_t clock = 0;    // this step included
  int64_t version = 0;  // of the weights that the gradient was computed from
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0;
  int64_t wants_weights = 0;

  DTRAIN_FIELDS(clock, version, samples, loss_sum, stop, wants_weights)
};

constexpr int64_t kNoStaleness = -1;

// Server to worker, with the shard's weights: "you may start".  The sums are of all workers' steps
// where these end together, else zero.
struct Weights {
  static constexpr int kKind = 3;
  int64_t version = 0;
  int64_t staleness = kNoStaleness;  // of the worker's last push here; told once
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0;

  DTRAIN_FIELDS(version, staleness, samples, loss_sum, stop)
};

}  // namespace dtrain::ps
