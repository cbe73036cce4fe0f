// HostedActor: an actor with the state that a driver keeps for it: its vectors, the solver's
// vectors for its master weights, and counters.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/exchange/device_residual.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/vectors.h"
#include "framework/strategies/actor.h"

namespace dtrain {

struct HostedActor {
  // `pools` is null in a ghost run.  The gradient gets `gradient_tail` more elements behind its
  // range.  `worker_residual` is used only if the actor is a worker.
  HostedActor(ActorId actor_id, std::unique_ptr<Actor> the_actor, const ExchangeSpec& spec,
              int gradient_tail, BlobPools* pools, DeviceResidual* worker_residual = nullptr)
      : id(actor_id),
        actor(std::move(the_actor)),
        device_residual(spec.placement().IsWorker(actor_id) ? worker_residual : nullptr),
        vectors(actor->Vectors(), gradient_tail, pools),
        master(vectors.Find(VectorRole::kMaster)),
        gradient(vectors.Find(VectorRole::kGradient)),
        weights(vectors.Find(VectorRole::kWeights)),
        samples_applied(spec.start.samples_applied),
        updates(spec.start.updates) {
    if (weights == kNoVector) weights = master;
    if (master == kNoVector || pools == nullptr) return;
    const size_t bytes = static_cast<size_t>(vectors.RangeOf(master).size()) * sizeof(float);
    for (size_t i = 0; i < spec.solver.solver->StateNames().size(); ++i) {
      solver_memory.emplace_back(pools->device(), bytes);
    }
  }

  // Sets the model's weights in every vector that begins with them, the solver's vectors and, of worker 0, the initial
  // residual and velocity.
  void BeginWith(const ExchangeSpec& spec, const VectorSlice& model);
  // Sets the frozen parameters to those of the model that the run begins with.  The rank's saved
  // state may have older ones.
  void TakeFrozen(const ArenaLayout& layout, const VectorSlice& model);
  // Visits the actor, its vectors and counters, for checkpoints and hashes.  `compresses`: a compressor has state in it.
  void Visit(StateVisitor& visitor, bool compresses);

  const ActorId id;
  const std::unique_ptr<Actor> actor;
  DeviceResidual* const device_residual;  // a worker's residual; null: it is one of the vectors
  ActorVectors vectors;
  const VectorId master, gradient;
  VectorId weights;                   // the weights that a worker computes with
  std::vector<Buffer> solver_memory;  // solver vectors of the master's range, in StateNames() order
  int64_t samples_applied;            // in the master (sets the learning rate), or by the worker
  int64_t updates;                    // complete updates of the master
  int64_t updated_elements = 0;       // of the update being made, which may come in buckets
  int64_t compressions = 0;           // of a whole vector so far; a key of random selections
  std::map<int64_t, float> thresholds;  // SelectionKey::threshold, by the unit's first element
  int64_t told_of_end = 0;  // 1: it was notified of the end of the run and got no event since

 private:
  void Keep(const KeptVectors& kept);
  void VisitThresholds(StateVisitor& visitor);
};

}  // namespace dtrain
