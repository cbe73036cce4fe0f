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

  // Sets the initial residual and velocity, if the actor has such vectors.
  void BeginWith(const KeptVectors& kept) {
    for (const auto& [role, from] : {std::pair(VectorRole::kResidual, &kept.residual),
                                     std::pair(VectorRole::kVelocity, &kept.velocity)}) {
      const VectorId to = vectors.Find(role);
      if (to == kNoVector || from->empty()) continue;
      std::copy(from->begin(), from->end(), vectors.Overwrite(to));
    }
    if (device_residual != nullptr) device_residual->TakeFrom(vectors);
  }

  // Sets the frozen parameters to those of the model that the run begins with.  The rank's saved
  // state may have older ones.
  void TakeFrozen(const ArenaLayout& layout, const VectorSlice& model) {
    if (!model.blob) return;  // a ghost run simulates sizes only
    for (size_t v = 0; v < vectors.specs().size(); ++v) {
      const VectorSpec& spec = vectors.specs()[v];
      if (spec.role != VectorRole::kWeights && spec.role != VectorRole::kMaster) continue;
      ForEachFactor(layout, spec.range, [&](Range part, double factor) {
        if (factor != 0) return;
        float* const to = vectors.Slice(static_cast<VectorId>(v), part).new_values;
        std::copy_n(model.At(part.begin), part.size(), to);
      });
    }
  }

  void VisitVectors(StateVisitor& visitor) {
    if (device_residual != nullptr) device_residual->Bring(vectors);
    vectors.Visit(visitor);
    if (device_residual != nullptr) device_residual->TakeFrom(vectors);
  }

  void VisitThresholds(StateVisitor& visitor) {
    std::vector<int64_t> units;
    std::vector<float> values;
    for (const auto& [unit, threshold] : thresholds) {
      units.push_back(unit);
      values.push_back(threshold);
    }
    visitor.Ints("threshold_units", units);
    values.resize(units.size());
    visitor.Floats("thresholds", values);
    thresholds.clear();
    for (size_t i = 0; i < units.size(); ++i) thresholds[units[i]] = values[i];
  }

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
};

}  // namespace dtrain
