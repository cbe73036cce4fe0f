// ps_asp is asynchronous parallel.  No worker ever waits for another.
#include "framework/strategies/ps/ps_strategy.h"

namespace dtrain::ps {
namespace {

class PsAsp : public PsStrategy {
 public:
  void Configure(config::Reader& reader) override {
    PsStrategy::Configure(reader);
    options_ = ReadSspOptions(reader);
    prefetch_ = reader.Bool("prefetch", false)
                    .Help(
                        "prefetch the next step's weights when a step starts; adds one step of "
                        "staleness");
  }
  StrategyTraits traits() const override { return {}; }
  std::string StopsAtDeath() const override { return ""; }  // no server waits for a worker
  bool Takes(const Compressor& compressor) const override { return CanPush(compressor); }
  bool MayChange(std::string_view key) const override { return key == "damping"; }
  double RateOfGradient(int workers) const override { return options_.RateOfGradient(workers); }

 protected:
  std::unique_ptr<Actor> MakeWorker(ActorId id, const ActorSetup& setup) const override {
    return std::make_unique<PsWorker>("ps_asp", id, setup, PsWorkerOptions{.prefetch = prefetch_});
  }
  std::unique_ptr<Actor> MakeServer(int server, const ActorSetup& setup) const override {
    return std::make_unique<SspServer>("ps_asp", server, setup, options_);
  }

 private:
  SspOptions options_;
  bool prefetch_ = false;
};

DTRAIN_STRATEGY(
    "ps_asp", PsAsp,
    "parameter servers, asynchronous: each gradient is applied when it arrives, no worker waits");

}  // namespace
}  // namespace dtrain::ps
