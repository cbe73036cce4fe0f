// inhad: gradients are summed inside each compute node, and pulled by the servers when enough of
// them are pending in all nodes together.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "framework/core/text.h"
#include "framework/strategies/inhad/node_aggregator.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/inhad/server.h"
#include "framework/strategies/inhad/worker.h"
#include "framework/strategies/server_keys.h"
#include "framework/strategies/strategy.h"

namespace dtrain::inhad {
namespace {

constexpr int64_t kBoundMax = 10000;  // a node has up to so many sums, one for each version

class Inhad : public Strategy {
 public:
  void Configure(config::Reader& reader) override;
  StrategyTraits traits() const override { return {}; }
  std::string StopsAtDeath() const override {
    if (options_.pull_timeout > 0) return "";
    return "its servers wait for every node, since strategy.pull_timeout is 0";
  }

  // Each worker is a node of its own here.  The run sets `node_of` when it knows the hosts of its
  // workers.
  Placement Place(int workers) const override {
    std::vector<int> node_of(workers);
    std::iota(node_of.begin(), node_of.end(), 0);
    return {.workers = workers,
            .servers = servers_.servers,
            .colocated = servers_.colocated,
            .node_of = node_of};
  }

  bool MayChange(std::string_view key) const override {
    return key == "in_interval" || key == "pull_timeout" || key == "scale";
  }
  std::vector<KeyError> Check(int workers) const override {
    if (options_.n <= workers) return {};
    return {{"n",
             fmt::format("n is {}, but there are {}: it counts as {}", options_.n,
                         Counted(workers, "worker"), workers),
             "", /*warning=*/true}};
  }

  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return servers_.Buckets(layer_gradients);
  }

  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const override {
    const Placement& placement = setup.placement;
    InhadOptions options = options_;
    options.n = std::min<int64_t>(options.n, placement.workers);
    options.may_fail = setup.may_fail;
    switch (placement.KindOf(id)) {
      case ActorKind::kWorker:
        return std::make_unique<InhadWorker>(id, setup, options);
      case ActorKind::kServer:
        return std::make_unique<InhadServer>(placement.ServerOf(id), setup, options);
      default:
        return std::make_unique<NodeAggregator>(placement.NumberOf(id), setup, options);
    }
  }

  std::vector<StrategyCounter> counters() const override {
    return {kUpTransfers,
            kDownTransfers,
            {"rounds", "pulls that made an update"},
            {"dropped", "gradients that were thrown away, too old"},
            {"merged",
             "with late: keep, gradients that were summed with others of another version, and "
             "count as old as these are on average"},
            {"slot_waits",
             "steps that began late, because the node had taken neither of the two gradients that "
             "the worker handed in before"},
            kLostGradients,
            {"ignored", "messages of nodes that had been given up"}};
  }

 private:
  ServerKeys servers_;
  InhadOptions options_;
};

void Inhad::Configure(config::Reader& reader) {
  servers_ = ServerKeys::Read(reader, 1,
                              "number of servers; each holds a shard of the weights, the first one "
                              "also decides when gradients are pulled");
  options_.n = reader.Int("n", 1).Min(1).Help(
      "splitting parameter: an update needs workers / n gradients; n = workers, or more: one is "
      "enough");
  const std::string scale =
      reader.String("scale", "one")
          .OneOf({"one", "share"})
          .Help(
              "learning rate of an update: lr for the mean of all its gradients (one), or lr times "
              "their number over workers / n, so that each counts alike (share)");
  options_.share = scale == "share";
  const std::string modulate =
      reader.String("modulate", "exact")
          .OneOf({"exact", "mean", "off"})
          .Help(
              "divide a gradient by its staleness: each by its own (exact), a node's sum by the "
              "mean in it (mean), or not at all (off)");
  options_.modulate = modulate == "exact"  ? Modulate::kExact
                      : modulate == "mean" ? Modulate::kMean
                                           : Modulate::kOff;
  options_.s_max = reader.Int("s_max", 0)
                       .Min(0)
                       .Max(kBoundMax)
                       .Help("staleness bound of a gradient; 0: 2 n + 1");
  const std::string late =
      reader.String("late", "wait")
          .OneOf({"wait", "drop", "keep"})
          .Help(
              "a gradient that would get older than s_max: the next update waits for it (wait), "
              "it is thrown away (drop), or it is used all the same (keep)");
  options_.late = late == "wait" ? Late::kWait : late == "drop" ? Late::kDrop : Late::kKeep;
  options_.lockstep =
      reader.Bool("lockstep", false)
          .Help("a worker starts its next step with newer weights only; with n = 1 this is BSP");
  const std::string broadcast =
      reader.String("broadcast", "all")
          .OneOf({"all", "pulled"})
          .Help("new weights go to all nodes, or to those whose gradients are in them");
  options_.broadcast_all = broadcast == "all";
  options_.pipelined =
      reader.Bool("pipelined", false)
          .Help("pull the next gradients while new weights are still on their way");
  options_.in_interval = FromSeconds(
      1e-3 *
      reader.Number("in_interval", 0)
          .Min(0)
          .Help(
              "minimum time, in milliseconds, between two reports of a node's number of gradients "
              "to the servers"));
  options_.pull_timeout =
      FromSeconds(reader.Number("pull_timeout", 30)
                      .Min(0)
                      .Help("if workers may die (cluster.deaths): seconds of silence after which a "
                            "node is asked to answer, and after as many more given up; 0: never"));
}

DTRAIN_STRATEGY("inhad", Inhad,
                "gradients are summed in each node, and pulled when enough are pending anywhere");

}  // namespace
}  // namespace dtrain::inhad
