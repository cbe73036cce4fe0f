// PsStrategy: the common base of the parameter-server strategies, with their keys and placement.
#pragma once

#include <memory>
#include <vector>

#include "framework/strategies/ps/ps_worker.h"
#include "framework/strategies/ps/ssp_server.h"
#include "framework/strategies/server_keys.h"
#include "framework/strategies/strategy.h"

namespace dtrain::ps {

class PsStrategy : public Strategy {
 public:
  void Configure(config::Reader& reader) override;

  Placement Place(int workers) const override {
    return {.workers = workers, .servers = servers_.servers, .colocated = servers_.colocated};
  }
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return servers_.Buckets(layer_gradients);
  }

  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const final;
  std::vector<StrategyCounter> counters() const override { return {kUpTransfers, kDownTransfers}; }

 protected:
  virtual std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const = 0;
  virtual std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const = 0;

 private:
  ServerKeys servers_;
};

// True if the entries that a worker selects can be applied without those of the others, at the
// config's density.
inline bool CanPush(const Compressor& compressor) {
  return compressor.coder() == nullptr && !compressor.density_by_strategy();
}

// Reads the keys `scale` and `damping` of the strategies that apply each gradient separately.  The
// bound is not set.
SspOptions ReadSspOptions(config::Reader& reader);

}  // namespace dtrain::ps
