#include "framework/cluster/deaths.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/cluster/network_model.h"
#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using config::Reader;

constexpr char kWhenHint[] = "at_seconds: virtual seconds, or at_step: steps of a worker";

// Declares only the keys that are given, since the effective config must have no others.
Death ReadDeath(Reader& reader) {
  Death death;
  death.where = reader.Where();
  const bool node = reader.Has("node") && !reader.Has("worker");
  if (node) {
    death.node = reader.Int("node", 0).Min(0).Help("node that dies with all its workers");
  } else {
    death.worker = reader.Int("worker", 0).Min(0).Required().Help("worker that dies");
  }
  if (reader.Has("at_step") && !reader.Has("at_seconds")) {
    death.at_step =
        reader.Int("at_step", 1).Min(1).Help("the worker dies after completing this many steps");
    if (node) reader.AddError("at_step", "a node has no steps of its own", "at_seconds");
  } else {
    death.at_seconds =
        reader.Number("at_seconds", 0).Min(0).Required().Help("virtual time at which it dies");
  }
  if (reader.Has("node") && !node) {
    reader.AddError("node", "either a worker dies or a node", "give one of worker and node");
    reader.Int("node", 0);
  }
  if (reader.Has("at_step") && reader.Has("at_seconds")) {
    reader.AddError("at_step", "a death has one time", kWhenHint);
    reader.Int("at_step", 1);
  }
  return death;
}

std::string WithServer(const Death& death, const Placement& placement, Rank rank) {
  return fmt::format("{} cannot die: {} is {}, and the weights would be lost with it", death.Who(),
                     fmt::format("rank {}", rank), placement.RoleOf(rank));
}

}  // namespace

std::string Death::Who() const {
  return node == kNone ? fmt::format("worker {}", worker) : fmt::format("node {}", node);
}

std::vector<Death> ReadDeaths(Reader& cluster) {
  std::vector<Death> deaths;
  for (Reader& reader :
       cluster.List("deaths", "workers and nodes that die in a simulated run, and when")) {
    deaths.push_back(ReadDeath(reader));
  }
  return deaths;
}

void RefuseDeaths(const std::vector<Death>& deaths) {
  if (deaths.empty()) return;
  throw ConfigError(
      fmt::format("{}: {} dies in a simulation only: over MPI a lost rank ends the run",
                  deaths[0].where, deaths[0].Who()),
      "dtrain simulate, or leave cluster.deaths out");
}

std::vector<Rank> RanksOf(const Death& death, const Placement& placement, int per_node) {
  std::vector<Rank> ranks;
  if (death.node == Death::kNone) {
    const auto worker = static_cast<Rank>(death.worker);
    const std::optional<ActorId> node = placement.NodeActorOf(worker);
    const bool aggregates = node && placement.RankOf(*node) == worker;
    if (!aggregates) return {worker};
    for (Rank rank = 0; rank < placement.workers; ++rank) {
      if (placement.node_of[rank] == placement.node_of[worker]) ranks.push_back(rank);
    }
    return ranks;
  }
  const std::vector<int> node_of = NodesOfRanks(placement, per_node);
  for (Rank rank = 0; rank < placement.ranks(); ++rank) {
    if (node_of[rank] == death.node) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<DeathError> CheckDeaths(const std::vector<Death>& deaths, const Placement& placement,
                                    int per_node) {
  std::set<Rank> with_servers;
  for (int server = 0; server < placement.servers; ++server) {
    with_servers.insert(placement.RankOf(placement.ServerId(server)));
  }
  std::set<Rank> dead;
  std::vector<DeathError> errors;
  for (size_t i = 0; i < deaths.size(); ++i) {
    const Death& death = deaths[i];
    if (death.worker >= placement.workers) {
      errors.push_back(
          {i, fmt::format("there is no worker {} among {}", death.worker, placement.workers),
           "workers are counted from 0"});
      continue;
    }
    const std::vector<Rank> ranks = RanksOf(death, placement, per_node);
    if (ranks.empty()) {
      errors.push_back({i,
                        fmt::format("there is no node {}: the run has {}, {} a node", death.node,
                                    Counted(placement.ranks(), "rank"), per_node),
                        "nodes are counted from 0, cluster.per_node ranks each"});
      continue;
    }
    for (const Rank rank : ranks) {
      if (with_servers.contains(rank)) {
        errors.push_back({i, WithServer(death, placement, rank), "strategy.placement: dedicated"});
        break;
      }
      dead.insert(rank);
    }
  }
  if (errors.empty() && static_cast<int>(dead.size()) == placement.workers) {
    errors.push_back({deaths.size() - 1, "no worker is left to go on", "let one live"});
  }
  return errors;
}

}  // namespace dtrain
