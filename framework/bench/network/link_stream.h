// A stream of messages one way, and when each arrived: what the fit of a link stands on
// (link_fit.h).
//
// Rank 0 sends back to back with 640 KB in flight, which fills any link whose round trip carries
// less; the peer answers each message with the time at which it was complete.  The peer's clock is
// mapped onto rank 0's by the fastest of a few exchanges of stamps, half its round trip for each
// way.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

struct Arrival {
  double seconds = 0;  // since the first message was sent, by rank 0's clock
  int64_t bytes = 0;   // of payload that had arrived by then, in all
};

using Arrivals = std::vector<Arrival>;  // of one stream, message by message

// Rank 0's part.  The streams grow fourfold until one lasts `seconds_min` (or has 4 GiB); `repeats`
// of that size are returned.  Before each the link idles for half of that time, so that a token
// bucket fills.
std::vector<Arrivals> StreamTo(Transport& transport, Rank peer, double seconds_min, int repeats);

// The peer's part.
void TakeStreams(Transport& transport);

}  // namespace dtrain
