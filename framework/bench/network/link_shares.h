// Measures how unevenly streams share a NIC: all other ranks send messages of one size to rank 0, with a pause after
// each, and the times of begin and end give each message's share of the NIC.
//
// With equal shares of a NIC that is always full, the bytes passed during a message would be the integral of rate /
// (messages under way) from its begin to its end.  Really one message passed: the ratio is its share relative to an
// equal one.  That share is compared with a mean which includes the message itself, so for n messages the variance of
// the logarithms is (1 - 1/n) times that of the weights.
#pragma once

#include <span>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// Holds the times of one message, in seconds.
struct Passage {
  double begin = 0;
  double end = 0;
};

// Returns the relative deviation of the messages' weights at a `fair` NIC (cluster/noise.h), assumed to be log-normal.
// Returns 0 if rarely two were under way at a time.
double ShareDeviationOf(std::span<const Passage> passages);

// Collective: all ranks call it.  Rank 0's result has the passages of `messages` messages of each other rank; the
// others' results are empty.
std::vector<Passage> TimeIncast(Transport& transport, int64_t bytes, int messages);

}  // namespace dtrain
