// Small blocking collectives (with Backoff) for set-up, evaluation and the end of a run; not for
// the step loop.  All ranks call them in the same order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/comm/transport.h"

namespace dtrain {

// Returns every rank's bytes, in rank order, on rank 0; an empty list on the others.
std::vector<std::string> Gather(Transport& transport, const std::string& mine);

// Returns rank 0's bytes on every rank.
std::string Broadcast(Transport& transport, const std::string& mine);

// Returns every rank's bytes, in rank order, on every rank.
std::vector<std::string> AllGather(Transport& transport, const std::string& mine);

// Sets `values` on every rank to those of `root`, along a binomial tree.
void BroadcastFloats(Transport& transport, Rank root, std::span<float> values);

// Sets `values` on rank `to` to those of rank `from`.  Other ranks do nothing.
void MoveFloats(Transport& transport, Rank from, Rank to, std::span<float> values);

}  // namespace dtrain
