// Noise: what makes a worker's steps differ, in real runs that are paced and in simulated ones, and
// what makes simulated messages differ.
//
// Jitter is a log-normal factor of mean 1, independent for each worker and step.  Its relative
// deviation d and the deviation s of its logarithm belong together by d^2 = exp(s^2) - 1:
// stragglers that the literature calls "log-normal 0.5" (s = 0.5) are jitter 0.533.
#pragma once

#include <cstdint>

#include "framework/comm/transport.h"

namespace dtrain {

double LogDeviationOf(double relative_deviation);  // d -> s
double RelativeDeviationOf(double log_deviation);  // s -> d

// exp(s z - s^2/2), z normal and keyed by (seed, worker, step).  1 without deviation.
double JitterFactor(double relative_deviation, uint64_t seed, int worker, int64_t step);

// Whether an event of this probability happens; independent of the jitter.
bool PausesIn(double probability, uint64_t seed, int worker, int64_t step);

// StreamShare: the weight with which a message shares the receiver's NIC with others.
//
// TCP streams of several senders that meet at a NIC do not share it evenly: those that were there
// first have large windows, losses strike by chance, and while a message lasts this changes little.
// So each message has a weight of its own, log-normal and independent of the others', and gets its
// weight's part of the NIC.  Streams that leave one host share its NIC evenly: their sender's
// queue takes turns (measured: servers' answers to seven workers end together).  `share_deviation`
// of cluster.network is its relative deviation; `dtrain bench link --incast` measures it.
//
// Of the message-th one from rank `from` to rank `to`.  1 without deviation.
double StreamShare(double relative_deviation, uint64_t seed, Rank from, Rank to, int64_t message);

}  // namespace dtrain
