// StepNoise: what makes a worker's steps differ, in real runs that are paced and in simulated ones.
//
// Jitter is a log-normal factor of mean 1, independent for each worker and step.  Its relative
// deviation d and the deviation s of its logarithm belong together by d^2 = exp(s^2) - 1:
// stragglers that the literature calls "log-normal 0.5" (s = 0.5) are jitter 0.533.
#pragma once

#include <cstdint>

namespace dtrain {

double LogDeviationOf(double relative_deviation);  // d -> s
double RelativeDeviationOf(double log_deviation);  // s -> d

// exp(s z - s^2/2), z normal and keyed by (seed, worker, step).  1 without deviation.
double JitterFactor(double relative_deviation, uint64_t seed, int worker, int64_t step);

// Whether an event of this probability happens; independent of the jitter.
bool PausesIn(double probability, uint64_t seed, int worker, int64_t step);

}  // namespace dtrain
