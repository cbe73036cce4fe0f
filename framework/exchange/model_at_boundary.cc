#include "framework/exchange/model_at_boundary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {

ModelAtBoundary::ModelAtBoundary(Driver& driver, const ExchangeSpec& spec, BlobPools* pools)
    : driver_(driver), spec_(spec), pools_(pools) {}

void ModelAtBoundary::Drop() {
  weights_ = Blob();
  host_weights_.clear();
  solver_.clear();
  solver_memory_.clear();
}

const float* ModelAtBoundary::HostWeights() {
  const ConstArena weights = weights_.arena();
  if (weights.queue == nullptr) return weights.data;
  if (host_weights_.empty()) {
    host_weights_.resize(static_cast<size_t>(spec_.size()));
    CopyOut(host_weights_.data(), weights, spec_.size());
  }
  return host_weights_.data();
}

// Copies the solver's vectors from a device to host_solver_, whose memory is kept for the next
// call.
void ModelAtBoundary::BringSolver(DeviceQueue* queue) {
  host_solver_.resize(solver_.size());
  for (size_t i = 0; i < solver_.size(); ++i) {
    host_solver_[i].resize(static_cast<size_t>(spec_.size()));
    CopyOut(host_solver_[i].data(), {solver_[i], queue}, spec_.size());
    solver_[i] = host_solver_[i].data();
  }
}

void ModelAtBoundary::Collect(Transport& transport, bool with_solver) {
  Drop();
  const ModelPlace place = spec_.traits().model;
  if (place == ModelPlace::kWorkers) {
    const std::vector<Driver::Master> masters = driver_.Masters();
    DT_CHECK(masters.size() == 1 && masters[0].range == (Range{0, spec_.size()}));
    weights_ = masters[0].weights;
    updates_ = masters[0].updates;
    DeviceQueue* const queue = weights_.arena().queue;
    if (queue == nullptr || with_solver) solver_ = masters[0].solver_state;
    if (queue != nullptr) BringSolver(queue);
    return;
  }
  const size_t solver_vectors = spec_.solver.solver->StateNames().size();
  weights_ = pools_->New(spec_.size());
  if (with_solver && transport.rank() == 0) {
    for (size_t i = 0; i < solver_vectors; ++i) {
      solver_memory_.push_back(pools_->New(spec_.size()));
      solver_.push_back(solver_memory_.back().MutableF32());
    }
  }
  if (place == ModelPlace::kReplicas) {
    CollectReplicas(transport, with_solver);
  } else {
    for (int server = 0; server < spec_.placement().servers; ++server) {
      CollectShard(transport, server, with_solver);
    }
  }
  if (with_solver) CollectUpdates(transport);
}

void ModelAtBoundary::CollectUpdates(Transport& transport) {
  ByteWriter mine;
  for (const Driver::Master& master : driver_.Masters()) {
    if (master.share > 0) mine.Value(master.updates);
  }
  for (const std::string& bytes : Gather(transport, mine.Take())) {
    for (ByteReader reader(bytes); !reader.AtEnd();) {
      updates_ = std::max(updates_, reader.Value<int64_t>());
    }
  }
}

// Rank 0 receives the replicas one after the other, so it needs memory for only one of them.
void ModelAtBoundary::CollectReplicas(Transport& transport, bool with_solver) {
  const auto count = static_cast<size_t>(spec_.size());
  const bool root = transport.rank() == 0;
  std::map<ActorId, Driver::Master> mine;
  ByteWriter shares;
  for (Driver::Master& master : driver_.Masters()) {
    shares(master.actor, master.share);
    mine[master.actor] = std::move(master);
  }
  std::map<ActorId, double> share_of;
  for (const std::string& of_rank : AllGather(transport, shares.Take())) {
    for (ByteReader reader(of_rank); !reader.AtEnd();) {
      const auto actor = reader.Value<ActorId>();
      share_of[actor] = reader.Value<double>();
    }
  }
  float* const mean = weights_.MutableF32();
  std::fill_n(mean, count, 0.0f);
  for (float* vector : solver_) std::fill_n(vector, count, 0.0f);
  const size_t solver_vectors = with_solver ? spec_.solver.solver->StateNames().size() : 0;
  double squares = 0;
  for (const auto& [id, share] : share_of) {
    const Rank owner = spec_.placement().RankOf(id);
    const Driver::Master* const own = mine.contains(id) ? &mine[id] : nullptr;
    squares +=
        share * AddFrom(transport, owner, own ? own->weights.f32() : nullptr, share, mean, true);
    for (size_t i = 0; i < solver_vectors; ++i) {
      AddFrom(transport, owner, own ? own->solver_state[i] : nullptr, share,
              root ? solver_[i] : nullptr, false);
    }
  }
  BroadcastFloats(transport, 0, {mean, count});
  if (!root) return;
  const double length = SumOfSquares(mean, spec_.size());
  spread_ = length > 0 ? std::sqrt(std::max(0.0, squares - length) / length) : 0;
}

// Adds share * the owner's vector to `mean`, on rank 0.  Returns the sum of squares of that vector
// if share > 0, else and on other ranks 0.
double ModelAtBoundary::AddFrom(Transport& transport, Rank owner, const float* mine, double share,
                                float* mean, bool model) {
  const auto count = static_cast<size_t>(spec_.size());
  if (share == 0) return 0;
  const bool root = transport.rank() == 0;
  Blob received;
  if (owner != 0 && root) {
    received = pools_->New(spec_.size());
    MoveFloats(transport, owner, 0, {received.MutableF32(), count});
    mine = received.f32();
  } else if (owner != 0 && transport.rank() == owner) {
    MoveFloats(transport, owner, 0, {const_cast<float*>(mine), count});
  }
  if (!root) return 0;
  PutPart(spec_, {.range = {0, spec_.size()}, .share = share}, mine, model, mean);
  return SumOfSquares(mine, spec_.size());
}

void ModelAtBoundary::CollectShard(Transport& transport, int server, bool with_solver) {
  const Placement& placement = spec_.placement();
  const size_t solver_vectors = spec_.solver.solver->StateNames().size();
  const ActorId id = placement.ServerId(server);
  const Rank owner = placement.RankOf(id);
  const Range shard = placement.ShardOf(server, spec_.size());
  const size_t count = static_cast<size_t>(shard.size());
  Driver::Master mine;
  for (Driver::Master& master : driver_.Masters()) {
    if (master.actor == id) mine = std::move(master);
  }
  float* const weights = weights_.MutableF32() + shard.begin;
  if (transport.rank() == owner) std::copy_n(mine.weights.f32(), count, weights);
  BroadcastFloats(transport, owner, {weights, count});
  if (!with_solver) return;
  for (size_t i = 0; i < solver_vectors; ++i) {
    if (transport.rank() == 0 && owner == 0) {
      std::copy_n(mine.solver_state[i], count, solver_[i] + shard.begin);
    } else if (transport.rank() == 0) {
      MoveFloats(transport, owner, 0, {solver_[i] + shard.begin, count});
    } else if (transport.rank() == owner) {
      MoveFloats(transport, owner, 0, {mine.solver_state[i], count});
    }
  }
}

void PutPart(const ExchangeSpec& spec, const Driver::Master& master, const float* vector,
             bool weights, float* arena) {
  if (master.share == 0) return;
  if (spec.traits().model != ModelPlace::kReplicas) {
    std::copy_n(vector, master.range.size(), arena + master.range.begin);
    return;
  }
  const auto share = static_cast<float>(master.share);
  for (int64_t i = 0; i < spec.size(); ++i) arena[i] += share * vector[i];
  if (weights) CopyFrozen(*spec.layout, vector, arena);
}

void PutMasters(const ExchangeSpec& spec, Driver& driver, float* arena) {
  for (const Driver::Master& master : driver.Masters()) {
    PutPart(spec, master, master.weights.f32(), true, arena);
  }
}

}  // namespace dtrain
