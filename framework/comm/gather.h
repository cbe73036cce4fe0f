// Small exchanges of all ranks at a boundary: they block (with back-off) and are for set-up, evaluation
// and the end of a run, not for the step loop.  Every rank calls them in the same order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// Rank 0 gets every rank's bytes, in rank order; the others get nothing.
std::vector<std::string> Gather(Transport& transport, const std::string& mine);

// Every rank gets rank 0's bytes.
std::string Broadcast(Transport& transport, const std::string& mine);

// Every rank gets `root`'s floats, along a binomial tree.  Only on `root` are they read.
void BroadcastFloats(Transport& transport, Rank root, std::span<float> values);

// Rank `to` gets `from`'s floats.
void MoveFloats(Transport& transport, Rank from, Rank to, std::span<float> values);

}  // namespace dtrain
