// easgd: each worker updates weights of its own and is drawn to a centre, as the centre is to it
// (Zhang, Choromanska, LeCun: "Deep learning with Elastic Averaging SGD", NIPS 2015, Algorithm 1,
// asynchronous).  The momentum of the paper's EAMSGD is that of the solver.
#include "framework/strategies/easgd/actors.h"
#include "framework/strategies/server_keys.h"

namespace dtrain::easgd {
namespace {

class Easgd : public Strategy {
 public:
  void Configure(config::Reader& reader) override {
    servers_ = ServerKeys::Read(reader, 1, "number of servers; each holds a part of the centre");
    options_.period = reader.Int("period", 10)
                          .Min(1)
                          .Help("steps of a worker between two meetings with the centre");
    options_.beta = reader.Number("beta", 0.9)
                        .Above(0)
                        .Max(1)
                        .Help(
                            "in a meeting, worker and centre each move beta / workers of the way "
                            "to the other");
  }
  StrategyTraits traits() const override { return {.model = ModelPlace::kShards}; }
  Placement Place(int workers) const override {
    return {.workers = workers, .servers = servers_.servers, .colocated = servers_.colocated};
  }
  std::string StopsAtDeath() const override { return ""; }  // no worker waits for another
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return servers_.Buckets(layer_gradients);
  }
  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const override {
    if (setup.placement.IsWorker(id)) return std::make_unique<EasgdWorker>(id, setup, options_);
    return std::make_unique<EasgdServer>(setup.placement.ServerOf(id), setup, options_);
  }
  std::vector<StrategyCounter> counters() const override {
    return {{"meetings", "times that a worker's weights and the centre moved to each other"}};
  }

 private:
  ServerKeys servers_;
  EasgdOptions options_;
};

DTRAIN_STRATEGY("easgd", Easgd,
                "each worker takes steps on weights of its own; every few steps they and a centre, "
                "kept by servers, move to each other (elastic averaging SGD)");

}  // namespace
}  // namespace dtrain::easgd
