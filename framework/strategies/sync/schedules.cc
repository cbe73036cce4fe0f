// Defines the synchronous strategies.  All use the same actor (sync_worker.h), and differ in the
// rule by which gradients are merged into one all-reduce.  With collective `ordered` all of them
// give the same bits.
#include "framework/strategies/sync/advice.h"
#include "framework/strategies/sync/buckets.h"
#include "framework/strategies/sync/merging.h"
#include "framework/strategies/sync/sync_worker.h"

namespace dtrain {
namespace {

class SyncStrategy : public Strategy {
 public:
  void Configure(config::Reader&) override {}
  StrategyTraits traits() const override {
    return {.lockstep = true, .collectives = true, .model = ModelPlace::kWorkers};
  }
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
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return BucketsOf(layer_gradients, MergeNone(ReadyOf(layer_gradients)));
  }

 private:
  std::string Name() const override { return "wfbp"; }
};

// Makes the same all-reduces as wfbp, but starts them only after the backward pass.
class Naive : public Wfbp {
 public:
  bool Overlaps() const override { return false; }

 private:
  std::string Name() const override { return "naive"; }
};

class Single : public SyncStrategy {
 public:
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return BucketsOf(layer_gradients, MergeAll(ReadyOf(layer_gradients)));
  }

 private:
  std::string Name() const override { return "single"; }
};

// Reduces in fusion buckets, as Horovod does.
class AllReduce : public SyncStrategy {
 public:
  void Configure(config::Reader& reader) override {
    fusion_bytes_ = reader.Int("fusion_bytes", 64 << 20)
                        .Min(0)
                        .Help(
                            "fusion threshold: gradients are reduced together up to this many "
                            "bytes; 0: no fusion");
  }
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return FusionBuckets(layer_gradients, fusion_bytes_);
  }

 private:
  std::string Name() const override { return "allreduce"; }

  int64_t fusion_bytes_ = 0;
};

// TimedStrategy is the base of the strategies that plan by measured times.  A resumed run keeps the
// plan of its checkpoint, so the key that the plan was made from may change.
class TimedStrategy : public SyncStrategy {
 public:
  bool PlansByTime() const override { return true; }
  // How long the rounds of a coder take is not measured.
  bool Takes(const Compressor& compressor) const override {
    return SyncStrategy::Takes(compressor) && compressor.coder() == nullptr;
  }
  bool MayChange(std::string_view key) const override { return key == "profile"; }
};

class MgWfbp : public TimedStrategy {
 public:
  void Configure(config::Reader& reader) override {
    const std::string rule =
        reader.String("rule", "exact")
            .OneOf({"exact", "published"})
            .Help(
                "exact: the plan with the shortest step, by dynamic programming; published: the "
                "paper's rule, one pair of neighbours after the other");
    published_ = rule == "published";
  }
  std::string PlanningRule() const override { return published_ ? " by rule published" : ""; }
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    const ReadyGradients gradients = ReadyOf(layer_gradients);
    if (!layer_gradients.timed()) return BucketsOf(layer_gradients, MergeNone(gradients));
    return BucketsOf(layer_gradients, published_
                                          ? MergeByRule(gradients, layer_gradients.reduce_seconds)
                                          : MergeBest(gradients, layer_gradients.reduce_seconds));
  }

 private:
  std::string Name() const override { return "mgwfbp"; }

  bool published_ = false;
};

// A run replaces `auto` by the name and keys of the chosen schedule before it starts; simulations
// use the buckets of this class.
class Auto : public TimedStrategy {
 public:
  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    if (!layer_gradients.timed())
      return BucketsOf(layer_gradients, MergeNone(ReadyOf(layer_gradients)));
    return BestSchedule(PredictSchedules(layer_gradients)).buckets;
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
