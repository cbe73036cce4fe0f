// allreduce: Horovod's manner - fixed fusion threshold, reduction while the backward pass goes on.
#include "framework/strategies/strategy.h"
#include "framework/strategies/sync/buckets.h"
#include "framework/strategies/sync/sync_worker.h"

namespace dtrain {
namespace {

class AllReduce : public Strategy {
 public:
  void Configure(config::Reader& reader) override {
    fusion_bytes_ = reader.Int("fusion_bytes", 64 << 20)
                        .Min(0)
                        .Help(
                            "fusion threshold: gradients are reduced together up to this many "
                            "bytes; 0: no fusion");
  }

  bool synchronous() const override { return true; }

  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return FusionBuckets(pieces, fusion_bytes_);
  }

  std::unique_ptr<Actor> MakeActor(ActorId, const ActorSetup& setup) const override {
    return std::make_unique<SyncWorker>("allreduce", setup.buckets, setup.whole_update);
  }

 private:
  int64_t fusion_bytes_ = 0;
};

DTRAIN_STRATEGY("allreduce", AllReduce,
                "synchronous all-reduce in fusion buckets, overlapped with the backward pass");

}  // namespace
}  // namespace dtrain
