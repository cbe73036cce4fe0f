// Rate, token bucket and line rate of a link from when the messages of a stream arrived.
//
// The model of the fit is a shaped link, as cloud machines and `tc tbf` have it: a bucket that was
// full passes at the speed of the line, everything after it at the rate,
//
//   bytes(t) = min(line t, bucket + rate t)
//
// in bytes of payload: over Ethernet and TCP the wire carries 4 to 5 % more than the rate says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// A stream of messages one way, and when each arrived (link_stream.cc).  Rank 0 sends back to back
// with 640 KB in flight, which fills any link whose round trip carries less; the peer answers each
// message with the time at which it was complete.  The peer's clock is mapped onto rank 0's by the
// fastest of a few exchanges of stamps, half its round trip for each way.
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

struct LinkFit {
  double rate = 0;    // bytes per second, in the long run
  double bucket = 0;  // bytes; 0: none to be seen
  double line = 0;    // bytes per second; the rate where there is no bucket
};

// From several streams over one link, each of at least 8 messages of one size.  The rate is the
// highest of theirs: other programs on the machines slow a stream down, nothing makes it faster
// than the link.  The bucket is the median one where most streams agree on it (to a quarter); one
// is seen when it holds two messages and a millisecond of the rate - less is the noise of
// scheduling - and when the stream went on for eight times as long.
LinkFit FitLink(std::span<const Arrivals> streams);

}  // namespace dtrain
