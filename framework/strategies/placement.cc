#include "framework/strategies/placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {

std::vector<int> NodesInOrder(int ranks, int per_node) {
  std::vector<int> node_of(ranks);
  for (int rank = 0; rank < ranks; ++rank) node_of[rank] = rank / per_node;
  return node_of;
}

int Placement::nodes() const {
  return node_of.empty() ? 0 : *std::max_element(node_of.begin(), node_of.end()) + 1;
}

int Placement::ranks() const {
  if (apart) return actors();
  return colocated ? workers : workers + servers;
}

ActorKind Placement::KindOf(ActorId actor) const {
  if (actor < workers) return ActorKind::kWorker;
  if (actor < workers + servers) return ActorKind::kServer;
  return actor < workers + servers + nodes() ? ActorKind::kNode : ActorKind::kCoordinator;
}

int Placement::NumberOf(ActorId actor) const {
  switch (KindOf(actor)) {
    case ActorKind::kWorker:
      return actor;
    case ActorKind::kServer:
      return actor - workers;
    case ActorKind::kNode:
      return actor - NodeId(0);
    case ActorKind::kCoordinator:
      return 0;
  }
  return 0;
}

std::vector<int> Placement::NodesOfWorkers(int per_node) const {
  return nodes() > 0 ? node_of : NodesInOrder(workers, per_node);
}

std::optional<ActorId> Placement::NodeActorOf(int worker) const {
  if (nodes() == 0) return std::nullopt;
  return NodeId(node_of[worker]);
}

std::vector<int> Placement::NodesWithMessages(std::vector<int> of_ranks) const {
  if (nodes() > 0) return of_ranks;
  std::set<int> with_server;
  for (int server = 0; server < servers; ++server) {
    with_server.insert(of_ranks[RankOf(ServerId(server))]);
  }
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (!with_server.contains(of_ranks[rank])) of_ranks[rank] = -1 - static_cast<int>(rank);
  }
  return of_ranks;
}

Rank Placement::RankOf(ActorId actor) const {
  if (apart || actor < workers) return actor;
  switch (KindOf(actor)) {
    case ActorKind::kWorker:
      return actor;
    case ActorKind::kServer:
      if (!colocated) return actor;
      return static_cast<Rank>(static_cast<int64_t>(ServerOf(actor)) * workers / servers);
    case ActorKind::kNode: {
      const auto lowest = std::find(node_of.begin(), node_of.end(), NumberOf(actor));
      DT_CHECK(lowest != node_of.end()) << "node " << NumberOf(actor) << " has no workers";
      return static_cast<Rank>(lowest - node_of.begin());
    }
    case ActorKind::kCoordinator:
      return servers > 0 ? RankOf(ServerId(0)) : 0;
  }
  return 0;
}

std::vector<ActorId> Placement::ActorsOf(Rank rank) const {
  std::vector<ActorId> actors;
  for (ActorId actor = 0; actor < this->actors(); ++actor) {
    if (RankOf(actor) == rank) actors.push_back(actor);
  }
  return actors;
}

std::string Placement::NameOf(ActorId actor) const {
  static const char* const kNames[] = {"worker ", "server ", "node ", "coordinator"};
  const ActorKind kind = KindOf(actor);
  const std::string name = kNames[static_cast<int>(kind)];
  return kind == ActorKind::kCoordinator ? name : name + std::to_string(NumberOf(actor));
}

std::string Placement::RoleOf(Rank rank) const {
  std::string role;
  for (const ActorId actor : ActorsOf(rank)) role += (role.empty() ? "" : ", ") + NameOf(actor);
  return role;
}

Range Placement::ShardOf(int server, int64_t size) const {
  return replicated ? Range{0, size} : SplitEvenly({0, size}, servers, server);
}

}  // namespace dtrain
