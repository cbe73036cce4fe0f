#include "framework/exchange/model_at_rest.h"

#include <algorithm>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {

ModelAtRest::ModelAtRest(Driver& driver, const ExchangeSpec& spec, BlobPools* pools)
    : driver_(driver), spec_(spec), pools_(pools) {}

void ModelAtRest::Drop() {
  weights_ = Blob();
  solver_.clear();
  solver_memory_.clear();
}

void ModelAtRest::Collect(Transport& transport, bool with_solver) {
  Drop();
  const Placement& placement = spec_.placement();
  if (placement.servers == 0) {
    const std::vector<Driver::Master> masters = driver_.Masters();
    DT_CHECK(masters.size() == 1 && masters[0].range == (Range{0, spec_.size()}));
    weights_ = masters[0].weights;
    solver_ = masters[0].solver_state;
    updates_ = masters[0].updates;
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
  for (int server = 0; server < placement.servers; ++server) {
    CollectShard(transport, server, with_solver);
  }
  if (with_solver) CollectUpdates(transport);
}

void ModelAtRest::CollectUpdates(Transport& transport) {
  ByteWriter mine;
  for (const Driver::Master& master : driver_.Masters()) mine.Value(master.updates);
  for (const std::string& bytes : Gather(transport, mine.Take())) {
    for (ByteReader reader(bytes); !reader.AtEnd();) {
      updates_ = std::max(updates_, reader.Value<int64_t>());
    }
  }
}

void ModelAtRest::CollectShard(Transport& transport, int server, bool with_solver) {
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

}  // namespace dtrain
