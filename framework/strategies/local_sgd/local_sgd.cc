// local_sgd: each worker updates weights of its own, and every `period` steps all of them become
// their mean (Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020,
// Algorithm 1).  The paper gives every worker as many samples; here the mean follows their numbers.
#include "framework/strategies/local_sgd/worker.h"

namespace dtrain::local_sgd {
namespace {

class LocalSgd : public Strategy {
 public:
  void Configure(config::Reader& reader) override {
    period_ = reader.Int("period", 8)
                  .Min(1)
                  .Help("steps that each worker takes alone before the weights are averaged");
  }
  StrategyTraits traits() const override {
    return {.lockstep = true, .collectives = true, .model = ModelPlace::kReplicas};
  }
  std::string StopsAtDeath() const override { return "its means need the weights of all workers"; }
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return {{0, layer_gradients.total()}};
  }
  bool Overlaps() const override { return false; }
  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const override {
    return std::make_unique<LocalSgdWorker>(id, setup, period_);
  }
  std::vector<StrategyCounter> counters() const override {
    return {{"means", "times that the workers' weights were averaged"}};
  }

 private:
  int64_t period_ = 8;
};

DTRAIN_STRATEGY("local_sgd", LocalSgd,
                "each worker takes steps on weights of its own; all-reduce every few steps makes "
                "them their mean (local SGD)");

}  // namespace
}  // namespace dtrain::local_sgd
