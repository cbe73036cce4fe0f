// Batch-norm statistics of a run with several workers.
//
// Each worker has its own statistics.  They are never sent with a gradient and never overwritten.  Evaluation,
// checkpoints and hashes use their mean, weighted by the workers' shares of a full batch, or an estimate
// (estimated_state.h).  With one worker, or with
// synchronised batch norm, the mean equals each worker's statistics to the bit.  A checkpoint's main file holds the
// mean alone: the workers of a resumed synchronous run start from it, which changes no weight (training does not read
// the statistics).  Asynchronous runs save each worker's own statistics in rank files (rank_state.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/sampler.h"

namespace dtrain {

// Returns the weight of each worker in the mean: its share of a full batch.
std::vector<int64_t> StateWeights(const Sampler& sampler, int workers);

// mean[i] = sum_w weights[w] states[w][i] / sum_w weights[w], in double and in worker order.
void MeanOfStates(std::span<const float* const> states, std::span<const int64_t> weights,
                  std::span<float> mean);

// Collective: every rank gets the mean over ranks 0 to weights.size() - 1.  `mine` is this rank's statistics.
void GatherMeanState(Transport& transport, std::span<const float> mine,
                     std::span<const int64_t> weights, std::span<float> mean);

}  // namespace dtrain
