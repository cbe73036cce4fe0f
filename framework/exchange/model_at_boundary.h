// ModelAtBoundary: the whole model, collected from the masters of all ranks at a boundary, when no
// message is in flight.
//
// If every worker has the whole model (ModelPlace::kWorkers), its master is used by reference.
// Servers' shards are broadcast to all ranks; their solver vectors are sent to rank 0.
// If the masters are replicas, weights and solver vectors are their means, weighted by
// Actor::MasterShare.  Vectors in a device's memory are copied to host memory on request.
#pragma once

#include <optional>
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
  // divided by the norm of the mean.  Nothing without replicas.
  std::optional<double> spread() const { return spread_; }

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
  std::optional<double> spread_;
};

// Adds a master's vector to an arena of the whole model, which begins with zeros: a replica with its share, any other
// part as it is, unless its share is 0.  `weights`: the vector has the weights, else one of the solver.  It is called in
// the order of the actors, so the mean of replicas has the same bits wherever it is computed.  Their frozen parameters are
// equal and are copied, since a mean with rounded shares could differ from them.
void PutPart(const ExchangeSpec& spec, const Driver::Master& master, const float* vector,
             bool weights, float* arena);

// Does it with the weights of all masters of a rank.
void PutMasters(const ExchangeSpec& spec, Driver& driver, float* arena);

}  // namespace dtrain
