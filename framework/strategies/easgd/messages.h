// Defines the messages between the workers and servers of easgd.
#pragma once

#include <cstdint>

#include "framework/strategies/message.h"

namespace dtrain::easgd {

// A worker sends it to a server, with the server's part of the worker's weights.
struct Weights {
  static constexpr int kKind = 1;
  int64_t samples = 0;  // that the worker has computed since its last meeting

  DTRAIN_FIELDS(samples)
};

// A server answers with its part of the centre, as it was before the worker's weights moved it.
struct Centre {
  static constexpr int kKind = 2;
  int64_t samples = 0;  // that all workers have computed up to their last meetings

  DTRAIN_FIELDS(samples)
};

}  // namespace dtrain::easgd
