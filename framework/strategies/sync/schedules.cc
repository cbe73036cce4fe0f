// The synchronous strategies: one actor (sync_worker.h), and a rule for each of which gradients one
// all-reduce carries.  Under `ordered` all of them come to the same bits.
#include "framework/strategies/sync/buckets.h"
#include "framework/strategies/sync/merging.h"
#include "framework/strategies/sync/sync_worker.h"

namespace dtrain {
namespace {

class SyncStrategy : public Strategy {
 public:
  void Configure(config::Reader&) override {}
  bool synchronous() const override { return true; }
  std::unique_ptr<Actor> MakeActor(ActorId, const ActorSetup& setup) const override {
    return std::make_unique<SyncWorker>(
        setup, Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward);
  }
  bool Takes(const Compressor& compressor) const override {
    return compressor.form() != Compressor::Form::kOwn && !compressor.density_by_strategy();
  }
};

class Wfbp : public SyncStrategy {
 public:
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return BucketsOf(pieces, MergeNone(ReadyOf(pieces)));
  }
};

// The same sums, one after the other when all gradients are there.
class Naive : public Wfbp {
 public:
  bool Overlaps() const override { return false; }
};

class Single : public SyncStrategy {
 public:
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return BucketsOf(pieces, MergeAll(ReadyOf(pieces)));
  }
};

// Horovod's manner.
class AllReduce : public SyncStrategy {
 public:
  void Configure(config::Reader& reader) override {
    fusion_bytes_ = reader.Int("fusion_bytes", 64 << 20)
                        .Min(0)
                        .Help(
                            "fusion threshold: gradients are reduced together up to this many "
                            "bytes; 0: no fusion");
  }
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return FusionBuckets(pieces, fusion_bytes_);
  }

 private:
  int64_t fusion_bytes_ = 0;
};

class MgWfbp : public SyncStrategy {
 public:
  void Configure(config::Reader& reader) override {
    const std::string rule =
        reader.String("rule", "exact")
            .OneOf({"exact", "published"})
            .Help(
                "exact: the plan with the shortest step, by dynamic programming; published: the "
                "paper's rule, one boundary after the other");
    published_ = rule == "published";
  }
  bool PlansByTime() const override { return true; }
  std::string PlanningRule() const override { return published_ ? " by rule published" : ""; }
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    const ReadyGradients gradients = ReadyOf(pieces);
    if (!pieces.timed()) return BucketsOf(pieces, MergeNone(gradients));
    return BucketsOf(pieces, published_ ? MergeByRule(gradients, pieces.reduce_seconds)
                                        : MergeBest(gradients, pieces.reduce_seconds));
  }

 private:
  bool published_ = false;
};

DTRAIN_STRATEGY("naive", Naive,
                "synchronous all-reduce, layer by layer, after the backward pass: no overlap");
DTRAIN_STRATEGY("wfbp", Wfbp,
                "synchronous all-reduce, layer by layer, overlapped with the backward pass");
DTRAIN_STRATEGY("single", Single,
                "synchronous all-reduce of the whole gradient at once, after the backward pass");
DTRAIN_STRATEGY("allreduce", AllReduce,
                "synchronous all-reduce in fusion buckets, overlapped with the backward pass");
DTRAIN_STRATEGY(
    "mgwfbp", MgWfbp,
    "synchronous all-reduce of layers that are merged by measured times, so that start-ups are "
    "saved and the overlap with the backward pass is kept (MG-WFBP)");

}  // namespace
}  // namespace dtrain
