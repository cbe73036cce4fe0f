// ps_ssp is stale synchronous parallel.  Each worker proceeds by itself, at most `staleness` steps
// ahead of the slowest one.
#include "framework/strategies/ps/ps_strategy.h"

namespace dtrain::ps {
namespace {

class PsSsp : public PsStrategy {
 public:
  void Configure(config::Reader& reader) override {
    PsStrategy::Configure(reader);
    options_ = ReadSspOptions(reader);
    options_.bound =
        reader.Int("staleness", 3)
            .Min(0)
            .Help("staleness bound: steps that a worker may be ahead of the slowest worker");
  }
  StrategyTraits traits() const override { return {}; }
  bool Takes(const Compressor& compressor) const override { return CanPush(compressor); }
  bool MayChange(std::string_view key) const override {
    return key == "staleness" || key == "damping";
  }
  double RateOfGradient(int workers) const override { return options_.RateOfGradient(workers); }

 protected:
  std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const override {
    return std::make_unique<PsWorker>("ps_ssp", id, setup, PsWorkerOptions{});
  }
  std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const override {
    return std::make_unique<SspServer>("ps_ssp", server, setup, options_);
  }

 private:
  SspOptions options_;
};

DTRAIN_STRATEGY(
    "ps_ssp", PsSsp,
    "parameter servers, stale synchronous: no worker leads the slowest by more than a bound");

}  // namespace
}  // namespace dtrain::ps
