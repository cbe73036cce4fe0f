// ps_bsp is bulk synchronous parallel.  All workers step together, with the sum of their gradients.
#include "framework/strategies/ps/bsp_server.h"
#include "framework/strategies/ps/ps_strategy.h"

namespace dtrain::ps {
namespace {

class PsBsp : public PsStrategy {
 public:
  StrategyTraits traits() const override { return {.lockstep = true}; }

 protected:
  std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const override {
    return std::make_unique<PsWorker>("ps_bsp", id, setup, PsWorkerOptions{.synchronous = true});
  }
  std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const override {
    return std::make_unique<BspServer>(server, setup);
  }
};

DTRAIN_STRATEGY(
    "ps_bsp", PsBsp,
    "parameter servers, synchronous: every step uses the sum of all workers' gradients");

}  // namespace
}  // namespace dtrain::ps
