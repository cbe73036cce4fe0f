// ModelAtBoundary: the whole model, put together from the masters of all ranks while nothing is in
// flight.
//
// Where every rank has a master of everything (synchronous strategies), that is it, by reference.
// Servers' shards are broadcast to all ranks; their solver vectors go to rank 0.  Of replicas the
// model is the mean by their shares, and so are the solver's vectors.  What lies in a device's memory
// is copied to the machine's when it is asked for.
#pragma once

#include <span>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/exchange/driver.h"

namespace dtrain {

class ModelAtBoundary {
 public:
  // All outlive it.  `pools` is null in a ghost run, which has no model.
  ModelAtBoundary(Driver& driver, const ExchangeSpec& spec, BlobPools* pools);

  // All ranks call it together.
  void Collect(Transport& transport, bool with_solver);
  void Drop();

  const Blob& weights() const { return weights_; }
  const float* HostWeights();
  std::span<float* const> solver_state() const { return solver_; }
  // Solver steps that the weights have had; on rank 0 after Collect with the solver.  At a boundary all
  // shards have had as many.
  int64_t updates() const { return updates_; }
  // How far replicas lie apart, on rank 0: root of the mean square distance from their mean, by the
  // length of that; 0 where there are none.
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
  // Of what lies in a device's memory.
  std::vector<float> host_weights_;
  std::vector<std::vector<float>> host_solver_;
  std::vector<float*> solver_;
  int64_t updates_ = 0;
  double spread_ = 0;
};

}  // namespace dtrain
