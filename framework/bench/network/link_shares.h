// How unevenly streams share a network card: all other ranks send rank 0 messages of one size, each
// the next one a while after its last, and when each began and was complete says what part of the
// card it had.
//
// At equal shares of a card that is always full a message would pass the integral of rate /
// (messages under way) between its begin and its end.  What it really passed is one message: the
// ratio is how much more or less than its equal share it had.  That share is compared with a mean
// which the message itself is part of, so of n messages the logarithms' variance is (1 - 1/n) of
// that of the weights.
#pragma once

#include <span>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// Of one message, in seconds.
struct Passage {
  double begin = 0;
  double end = 0;
};

// The relative deviation of the messages' weights at a `fair` card (sim/noise.h), taken as
// log-normal.  0 where hardly two were under way at a time.
double ShareDeviationOf(std::span<const Passage> passages);

// Collective.  Rank 0's answer holds the passages of `messages` messages of each other rank, the
// others' is empty.
std::vector<Passage> TimeIncast(Transport& transport, int64_t bytes, int messages);

}  // namespace dtrain
