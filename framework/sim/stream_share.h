// StreamShare: the weight with which a message shares the receiver's card with others.
//
// TCP streams of several senders that meet at a card do not share it evenly: those that were there
// first have large windows, losses strike by chance, and while a message lasts this changes little.
// So each message has a weight of its own, log-normal and independent of the others', and gets its
// weight's part of the card.  Streams that leave one host share its card evenly: their sender's
// queue takes turns (measured: servers' answers to seven workers end together).  `share_deviation`
// of cluster.network is its relative deviation; `dtrain bench link
// --incast` measures it.
#pragma once

#include <cstdint>

#include "framework/comm/transport.h"

namespace dtrain {

// Of the message-th one from rank `from` to rank `to`.  1 without deviation.
double StreamShare(double relative_deviation, uint64_t seed, Rank from, Rank to, int64_t message);

}  // namespace dtrain
