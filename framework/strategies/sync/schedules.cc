// The synchronous strategies: one actor (sync_worker.h), and a rule for each of which gradients one
// all-reduce carries.  Under `ordered` all of them come to the same bits.
#include "framework/strategies/sync/advice.h"
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
        Name(), setup, Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward);
  }
  bool Takes(const Compressor& compressor) const override {
    return !compressor.density_by_strategy();
  }

 private:
  virtual std::string Name() const = 0;
};

class Wfbp : public SyncStrategy {
 public:
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return BucketsOf(pieces, MergeNone(ReadyOf(pieces)));
  }

 private:
  std::string Name() const override { return "wfbp"; }
};

// The same sums, one after the other when all gradients are there.
class Naive : public Wfbp {
 public:
  bool Overlaps() const override { return false; }

 private:
  std::string Name() const override { return "naive"; }
};

class Single : public SyncStrategy {
 public:
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    return BucketsOf(pieces, MergeAll(ReadyOf(pieces)));
  }

 private:
  std::string Name() const override { return "single"; }
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
  std::string Name() const override { return "allreduce"; }

  int64_t fusion_bytes_ = 0;
};

// Its plan is the run's, whatever it was made from.
class TimedStrategy : public SyncStrategy {
 public:
  bool PlansByTime() const override { return true; }
  bool MayChange(std::string_view key) const override {
    return key == "profile" || key == "replan";
  }
};

class MgWfbp : public TimedStrategy {
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
  std::string PlanningRule() const override { return published_ ? " by rule published" : ""; }
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    const ReadyGradients gradients = ReadyOf(pieces);
    if (!pieces.timed()) return BucketsOf(pieces, MergeNone(gradients));
    return BucketsOf(pieces, published_ ? MergeByRule(gradients, pieces.reduce_seconds)
                                        : MergeBest(gradients, pieces.reduce_seconds));
  }

 private:
  std::string Name() const override { return "mgwfbp"; }

  bool published_ = false;
};

// A run takes the name and the keys of what it decides on; a simulation has its buckets.
class Auto : public TimedStrategy {
 public:
  std::vector<Range> Buckets(const GradientPieces& pieces) const override {
    if (!pieces.timed()) return BucketsOf(pieces, MergeNone(ReadyOf(pieces)));
    return BestSchedule(PredictSchedules(pieces)).buckets;
  }

 private:
  std::string Name() const override { return kAutoStrategy; }
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
DTRAIN_STRATEGY(
    "auto", Auto,
    "the best of naive, wfbp, single, allreduce and mgwfbp by measured times, as dtrain "
    "plan advises; collective and compressor stay as given, and parameter servers are "
    "not considered");

}  // namespace
}  // namespace dtrain
