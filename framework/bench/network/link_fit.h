// Estimates rate, token bucket and line rate of a link from the arrival times of a stream's messages.
//
// The model is a shaped link, as on cloud machines and with `tc tbf`: the bytes of a full bucket pass at the line's
// speed, all later ones at the rate,
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

// Describes an arrival in a one-way stream of messages (link_stream.cc).  Rank 0 sends back to back with 640 KB in
// flight, which fills any link with a smaller bandwidth-delay product; the peer answers each message with the time at
// which it was complete.  The peer's clock is mapped to rank 0's by the fastest of a few exchanges of time stamps, with
// half its round trip for each way.
struct Arrival {
  double seconds = 0;  // since the first send, by rank 0's clock
  int64_t bytes = 0;   // total payload that had arrived by then
};

using Arrivals = std::vector<Arrival>;  // one stream, message by message

// Sends streams from rank 0.  They grow fourfold until one lasts `seconds_min` (or has 4 GiB); returns `repeats`
// streams of that size.  Before each one the link idles for half of that time, so that a token bucket fills.
std::vector<Arrivals> StreamTo(Transport& transport, Rank peer, double seconds_min, int repeats);

// Receives the streams on the peer.
void TakeStreams(Transport& transport);

struct LinkFit {
  double rate = 0;    // bytes per second, in the long run
  double bucket = 0;  // bytes; 0: no bucket seen
  double line = 0;    // bytes per second; equals the rate without a bucket
};

// Fits several streams over one link, each of at least 8 messages of one size.  The rate is the highest of theirs:
// other programs can slow a stream down, but nothing makes it faster than the link.  The bucket is the median if most
// streams agree on it (within a quarter).  A bucket is recognised if it holds two messages and a millisecond of the
// rate (less is scheduling noise) and the stream lasted eight times as long.
LinkFit FitLink(std::span<const Arrivals> streams);

}  // namespace dtrain
