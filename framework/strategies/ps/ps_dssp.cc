// ps_dssp is dynamic stale synchronous parallel.  The bound is between `staleness` and
// `staleness_max` and follows the workers' speeds (Zhao et al., ICDCS 2019).
#include <fmt/format.h>

#include "framework/strategies/ps/ps_strategy.h"

namespace dtrain::ps {
namespace {

class PsDssp : public PsStrategy {
 public:
  void Configure(config::Reader& reader) override {
    PsStrategy::Configure(reader);
    options_ = ReadSspOptions(reader);
    options_.bound = reader.Int("staleness", 3)
                         .Min(0)
                         .Help("steps that a worker may always be ahead of the slowest worker");
    options_.bound_max =
        reader.Int("staleness_max", 15)
            .Min(0)
            .Help(
                "upper limit of the bound: the fastest worker may be that many steps ahead if this "
                "shortens its wait for the slowest worker");
  }
  StrategyTraits traits() const override { return {}; }
  bool Takes(const Compressor& compressor) const override { return CanPush(compressor); }
  bool MayChange(std::string_view key) const override { return key == "damping"; }
  double RateOfGradient(int workers) const override { return options_.RateOfGradient(workers); }
  std::vector<KeyError> Check(int) const override {
    if (options_.bound_max >= options_.bound) return {};
    return {{"staleness_max",
             fmt::format("strategy.staleness_max is {}, less than strategy.staleness, {}",
                         options_.bound_max, options_.bound),
             "with equal values it is ps_ssp",
             false,
             {"staleness"}}};
  }

 protected:
  std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const override {
    return std::make_unique<PsWorker>("ps_dssp", id, setup, PsWorkerOptions{});
  }
  std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const override {
    return std::make_unique<SspServer>("ps_dssp", server, setup, options_);
  }

 private:
  SspOptions options_;
};

DTRAIN_STRATEGY("ps_dssp", PsDssp,
                "parameter servers, stale synchronous, with a bound that follows the workers' "
                "speeds");

}  // namespace
}  // namespace dtrain::ps
