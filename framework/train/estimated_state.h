// Batch-norm statistics that are estimated anew, for a model that no worker has trained.
//
// If the model at a boundary is a mean of replicas, the workers' running statistics belong to other weights: those of
// their replicas.  Their mean (mean_state.h) does not fit the mean of the weights, whose activations vary less.  So the
// model itself computes them (torch.optim.swa_utils.update_bn): forward passes over training samples, in which each
// layer normalises by the statistics of its batch, and of these the mean over the batches, weighted by samples.
//
// The samples are the first ones of epoch 0's order (Sampler::Shuffle), not augmented, in fixed batches; dropout keeps
// all values, as in evaluation.  Rank r of P computes the batches r, r + P, ...; the mean is in double and in batch
// order.  So the result is a function of the weights and the seed, with the same bits for any number of ranks, in a real
// run, a simulated one and a replay.  The workers' own statistics are neither read nor changed, but for those of frozen
// layers, which are everywhere the same and are taken as they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/bytes.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/graph.h"
#include "framework/nn/net.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Returns from how many training samples a run estimates the statistics of its model at a boundary
// (evaluate.statistics); 0: it takes the mean of the workers' statistics, or there are none to estimate.
int64_t SamplesOfEstimate(const RunConfig& config, const Graph& graph, const Dataset& dataset);

// Returns the number of samples of the largest batch, for which a net may be prepared; 0 for 0 samples.
int64_t EstimateBatchOf(const Dataset& dataset, int64_t samples);

// Holds the statistics of one batch.
struct BatchState {
  int64_t batch = 0;
  int64_t samples = 0;
  std::vector<float> state;
  DTRAIN_FIELDS(batch, samples, state)
};

// Computes this rank's batches of the first `samples` samples.  `state` has the statistics of the frozen layers.
std::vector<BatchState> EstimateBatches(Net& net, const Dataset& dataset, const Sampler& sampler,
                                        int64_t samples, ConstArena weights,
                                        std::span<const float> state, int rank, int ranks);

// Collective: all ranks get the mean over the batches of all of them.
void JoinStates(Transport& transport, const std::vector<BatchState>& mine, std::span<float> mean);

}  // namespace dtrain
