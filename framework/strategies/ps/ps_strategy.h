// What the strategies of the family have in common: their keys, and who is worker and who server.
#pragma once

#include <memory>
#include <vector>

#include "framework/strategies/ps/ps_worker.h"
#include "framework/strategies/ps/ssp_server.h"
#include "framework/strategies/strategy.h"

namespace dtrain::ps {

class PsStrategy : public Strategy {
 public:
  void Configure(config::Reader& reader) override;

  Placement Place(int workers) const override {
    return {.workers = workers, .servers = servers_, .colocated = colocated_};
  }

  // One: a gradient is pushed when all of it is final, and shards are the servers' business.
  // Throws ConfigError when there are more servers than parameters.
  std::vector<Range> Buckets(const GradientPieces& pieces) const override;

  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const final;

 protected:
  virtual std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const = 0;
  virtual std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const = 0;

 private:
  int servers_ = 1;
  bool colocated_ = false;
};

// Whether a worker's selection can be applied by itself, at the config's density.
inline bool CanPush(const Compressor& compressor) {
  return compressor.form() != Compressor::Form::kOwn && !compressor.density_by_strategy();
}

// Keys `scale` and `damping` of the strategies that apply each gradient by itself; no bound.
SspOptions ReadSspOptions(config::Reader& reader);

}  // namespace dtrain::ps
