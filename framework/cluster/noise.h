// Noise: makes a worker's steps differ, in paced real runs and in simulated ones, and makes simulated messages differ.
//
// Jitter is a log-normal factor of mean 1, independent for each worker and step.  Its relative deviation d and the
// deviation s of its logarithm are related by d^2 = exp(s^2) - 1: stragglers that the literature calls "log-normal 0.5"
// (s = 0.5) are jitter 0.533.
#pragma once

#include <cstdint>

#include "framework/comm/transport.h"

namespace dtrain {

double LogDeviationOf(double relative_deviation);  // d -> s
double RelativeDeviationOf(double log_deviation);  // s -> d

// Returns exp(s z - s^2/2), where z is normal and keyed by (seed, worker, step).  Returns 1 without deviation.
double JitterFactor(double relative_deviation, uint64_t seed, int worker, int64_t step);

// True if this step begins with a pause, which has this probability; independent of the jitter.
bool PausesIn(double probability, uint64_t seed, int worker, int64_t step);

// StreamShare: returns the weight with which a message shares the receiver's NIC with others.
//
// TCP streams of several senders that meet at a NIC do not share it evenly: those that came first have large windows,
// losses strike by chance, and this changes little while a message lasts.  So each message has a weight of its own,
// log-normal and independent of the others', and gets its weight's part of the NIC.  Streams that leave one host share
// its NIC evenly: their sender's queue takes turns (measured: servers' answers to seven workers end together).
// `share_deviation` of cluster.network is its relative deviation; `dtrain bench link --incast` measures it.
//
// `message` counts the messages from rank `from` to rank `to`.  The weight is 1 without deviation.
double StreamShare(double relative_deviation, uint64_t seed, Rank from, Rank to, int64_t message);

}  // namespace dtrain
