// Rate, token bucket and line rate of a link from when the messages of a stream arrived.
//
// The model is a shaped link, as cloud machines and `tc tbf` have it: a bucket that was full passes
// at the speed of the line, everything after it at the rate,
//
//   bytes(t) = min(line t, bucket + rate t)
//
// in bytes of payload: over Ethernet and TCP the wire carries 4 to 5 % more than the rate says.
#pragma once

#include <span>

#include "framework/bench/network/link_stream.h"

namespace dtrain {

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
