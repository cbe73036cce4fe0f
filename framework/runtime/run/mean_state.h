// Batch-norm statistics of a run with several workers.  Each worker has its own, which never travel
// with a gradient and are never overwritten; what is evaluated, saved and hashed is their mean,
// weighted by the workers' shares of a full batch.  One worker's, and those of synchronised batch
// norm, are their own mean to the bit.  A checkpoint's main file holds the mean alone: the workers of a
// resumed synchronous run go on from it, which changes no weight (training does not read the
// statistics).  Asynchronous ones have each worker's own in rank files (rank_state.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/sampler.h"

namespace dtrain {

// The weight of each worker.
std::vector<int64_t> StateWeights(const Sampler& sampler, int workers);

// mean[i] = sum_w weights[w] states[w][i] / sum_w weights[w], in double and in worker order.
void MeanOfStates(std::span<const float* const> states, std::span<const int64_t> weights,
                  std::span<float> mean);

// Collective: every rank gets the mean over ranks 0 to weights.size() - 1.
void GatherMeanState(Transport& transport, std::span<const float> mine,
                     std::span<const int64_t> weights, std::span<float> mean);

}  // namespace dtrain
