// ModelAtBoundary: the whole model, collected from the masters of all ranks at a boundary, when no
// message is in flight.
//
// If every worker has the whole model (ModelPlace::kWorkers), its master is used by reference.
// Servers' shards are broadcast to all ranks; their solver vectors are sent to rank 0.
// If the masters are replicas, weights and solver vectors are their means, weighted by
// Actor::MasterShare.  Vectors in a device's memory are copied to host memory on request.
#pragma once

#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/exchange/driver.h"

namespace dtrain {

class ModelAtBoundary {
 public:
  // The arguments outlive it.  `pools` is null in a ghost run, which has no model.
  ModelAtBoundary(Driver& driver, const ExchangeSpec& spec, BlobPools* pools);

  // Collective call: all ranks make it together.
  void Collect(Transport& transport, bool with_solver);
  void Drop();

  const Blob& weights() const { return weights_; }
  const float* HostWeights();
  std::span<float* const> solver_state() const { return solver_; }
  // Returns the number of solver steps that the weights have had.  Valid on rank 0 after Collect
  // with the solver; at a boundary the number is the same for all shards.
  int64_t updates() const { return updates_; }
  // Spread of the replicas, on rank 0: the root of their mean square distance from their mean,
  // divided by the norm of the mean.  0 without replicas.
  double spread() const { return spread_; }

 private:
  void BringSolver(DeviceQueue* queue);
  void CollectShard(Transport& transport, int server, bool with_solver);
  void CollectReplicas(Transport& transport, bool with_solver);
  double AddFrom(Transport& transport, Rank owner, const float* mine, double share, float* mean,
                 bool model);
  void CollectUpdates(Transport& transport);

  Driver& driver_;
  const ExchangeSpec& spec_;
  BlobPools* const pools_;
  Blob weights_;
  std::vector<Blob> solver_memory_;
  // Copies of vectors in a device's memory.
  std::vector<float> host_weights_;
  std::vector<std::vector<float>> host_solver_;
  std::vector<float*> solver_;
  int64_t updates_ = 0;
  double spread_ = 0;
};

}  // namespace dtrain
