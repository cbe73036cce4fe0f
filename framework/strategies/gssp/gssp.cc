// gssp: workers of similar speed share a group with a server of its own.  The protocol is stale
// synchronous inside a group, and asynchronous between the groups.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "framework/core/text.h"
#include "framework/strategies/gssp/coordinator.h"
#include "framework/strategies/gssp/group_server.h"
#include "framework/strategies/gssp/options.h"
#include "framework/strategies/gssp/worker.h"
#include "framework/strategies/server_keys.h"
#include "framework/strategies/strategy.h"

namespace dtrain::gssp {
namespace {

constexpr int kServers = 4;  // number of servers for `servers: auto`

class Gssp : public Strategy {
 public:
  void Configure(config::Reader& reader) override;
  StrategyTraits traits() const override { return {.model = ModelPlace::kReplicas}; }

  Placement Place(int workers) const override {
    const int servers = servers_.servers > 0 ? servers_.servers : std::min(kServers, workers);
    return {.workers = workers,
            .servers = servers,
            .colocated = servers_.colocated,
            .replicated = true,
            .coordinator = true};
  }
  // At the end of an epoch workers may be regrouped, and residuals and densities are sent.
  Boundaries boundaries(const CompressConfig& compress) const override {
    const bool regroups = options_.Regroups(servers_.servers != 1 ? kServers : 1);
    return {.every_epochs = regroups || compress.on() ? 1 : 0,
            .after_steps = regroups ? kStepsBeforeGrouping : 0};
  }
  bool Takes(const Compressor& compressor) const override {
    return compressor.density_by_strategy();
  }
  bool MayChange(std::string_view key) const override {
    return key == "staleness" || key == "exchange_every";
  }
  double RateOfGradient(int workers) const override { return 1.0 / workers; }  // for any `scale`
  std::vector<KeyError> Check(int workers) const override;

  std::vector<Range> Buckets(const LayerGradients& layer_gradients) const override {
    return {{0, layer_gradients.total()}};
  }

  std::unique_ptr<Actor> MakeActor(ActorId id, const ActorSetup& setup) const override;

  std::vector<StrategyCounter> counters() const override {
    return {kUpTransfers,
            kDownTransfers,
            {"exchanges", "sums of gradients, or weights, that a group sent to the others"},
            {"regroups", "new groupings that moved a worker"}};
  }

 private:
  void ReadGrouping(config::Reader& reader);
  void CheckGroupOf(int workers, int servers, std::vector<KeyError>& errors) const;
  std::vector<int64_t> FirstGroups(const Placement& placement) const;

  ServerKeys servers_;
  GsspOptions options_;
};

void Gssp::Configure(config::Reader& reader) {
  servers_ = ServerKeys::Read(reader, 0,
                              "number of group servers, each with the whole model; auto: 4, or as "
                              "many as workers where these are fewer");
  options_.bound =
      reader.Int("staleness", kBound)
          .Min(0)
          .Help(
              "staleness bound: steps that a worker may be ahead of the slowest of its group; not "
              "with inside: bsp");
  const std::string inside =
      reader.String("inside", "ssp")
          .OneOf({"ssp", "bsp"})
          .Help("inside a group: stale synchronous (ssp), or synchronous as Grouping-SGD (bsp)");
  options_.inside = inside == "bsp" ? Inside::kBsp : Inside::kSsp;
  const std::string between =
      reader.String("exchange", "gradients")
          .OneOf({"gradients", "averaging"})
          .Help("what group servers send each other: sums of gradients, or their weights");
  options_.between = between == "averaging" ? Between::kAveraging : Between::kGradients;
  options_.exchange_every =
      reader.Int("exchange_every", 0)
          .Min(0)
          .Help(
              "gradients of a group between two exchanges; 0: as many as it has workers; with "
              "inside: bsp an exchange waits for the end of a round");
  const std::string scale =
      reader.String("scale", "share")
          .OneOf({"share", "gradient"})
          .Help(
              "a worker's gradient counts with lr / workers (share), or is divided by the number "
              "of workers itself (gradient, as published)");
  options_.scale_gradient = scale == "gradient";
  ReadGrouping(reader);
}

void Gssp::ReadGrouping(config::Reader& reader) {
  options_.groups = reader.Int("groups", 0)
                        .Auto()
                        .Min(0)
                        .Help("number of groups; auto: as many as the workers' speeds ask for");
  const std::string grouping =
      reader.String("grouping", "measured")
          .OneOf({"measured", "static"})
          .Help(
              "measured: workers of similar speed share a group, from 20 steps on; static: the "
              "groups of the start stay");
  options_.measured = grouping == "measured";
  options_.equal_size =
      reader.Bool("equal_size", false).Help("measured groups have equal numbers of workers");
  options_.group_of =
      reader.Ints("group_of", {})
          .Min(0)
          .Help("the group of each worker at the start, from 0; empty: blocks by rank");
}

std::vector<Strategy::KeyError> Gssp::Check(int workers) const {
  std::vector<KeyError> errors;
  const int servers = Place(workers).servers;
  if (servers > workers) {
    errors.push_back({"servers",
                      fmt::format("{} group servers, but {}: a group needs a worker", servers,
                                  Counted(workers, "worker")),
                      "set strategy.servers to as many as there are workers, or fewer"});
  }
  if (options_.groups > std::min(servers, workers)) {
    errors.push_back({"groups",
                      fmt::format("{}, but {} and {}", Counted(options_.groups, "group"),
                                  Counted(servers, "group server"), Counted(workers, "worker")),
                      "each group has a server of its own and at least one worker",
                      false,
                      {"servers"}});
  }
  if (options_.inside == Inside::kBsp && options_.bound != kBound) {
    errors.push_back(
        {"staleness",
         fmt::format("strategy.staleness is {}, but inside: bsp has no bound", options_.bound),
         "workers of a group wait for each other after every step; leave it out",
         false,
         {"inside"}});
  }
  if (!options_.group_of.empty()) CheckGroupOf(workers, servers, errors);
  return errors;
}

// A server without workers gets no gradients and cannot get a group later, so `groups`, if given,
// must be the number of groups at the start as well.
void Gssp::CheckGroupOf(int workers, int servers, std::vector<KeyError>& errors) const {
  const std::vector<int64_t>& group_of = options_.group_of;
  const auto add = [&](const std::string& what) {
    errors.push_back({"group_of",
                      what,
                      "give one number a worker, each group's from 0 on",
                      false,
                      {"servers", "groups"}});
  };
  if (static_cast<int>(group_of.size()) != workers) {
    return add(
        fmt::format("group_of has {} numbers for {}", group_of.size(), Counted(workers, "worker")));
  }
  const int64_t groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  if (groups > servers) {
    return add(fmt::format("group_of names group {}, but there are {}, from group 0 on", groups - 1,
                           Counted(servers, "group server")));
  }
  for (int64_t group = 0; group < groups; ++group) {
    if (std::count(group_of.begin(), group_of.end(), group) > 0) continue;
    add(fmt::format("group {} of group_of has no worker", group));
  }
  if (options_.groups > 0 && options_.groups != groups) {
    add(fmt::format("group_of has {}, but groups is {}", Counted(groups, "group"),
                    options_.groups));
  }
}

std::vector<int64_t> Gssp::FirstGroups(const Placement& placement) const {
  if (!options_.group_of.empty()) return options_.group_of;
  const int64_t groups = options_.groups > 0 ? options_.groups : placement.servers;
  std::vector<int64_t> server_of(placement.workers);
  for (int worker = 0; worker < placement.workers; ++worker) {
    server_of[worker] = worker * groups / placement.workers;
  }
  return server_of;
}

std::unique_ptr<Actor> Gssp::MakeActor(ActorId id, const ActorSetup& setup) const {
  const Placement& placement = setup.placement;
  const std::vector<int64_t> server_of = FirstGroups(placement);
  switch (placement.KindOf(id)) {
    case ActorKind::kWorker:
      return std::make_unique<GsspWorker>(id, setup, server_of);
    case ActorKind::kServer:
      return std::make_unique<GroupServer>(placement.ServerOf(id), setup, options_, server_of);
    default:
      return std::make_unique<Coordinator>(setup, options_, server_of);
  }
}

DTRAIN_STRATEGY(
    "gssp", Gssp,
    "groups of workers of similar speed: stale synchronous inside, asynchronous between");

}  // namespace
}  // namespace dtrain::gssp
