// Placement: the rank of each actor, and the part of the arena that each server has.
//
// Actors are numbered kind by kind: workers 0..W-1, servers, one actor for each node, a
// coordinator.  A strategy may have no actors of a kind; most have workers and servers only.
//
//   worker w       rank w
//   server s       dedicated: rank W + s; colocated: the rank of worker s * W / S, so that the
//                  servers are spread over the nodes
//   node n         the rank of its lowest worker
//   coordinator    the rank of server 0, or of worker 0 if there are no servers
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/strategies/message.h"

namespace dtrain {

enum class ActorKind { kWorker, kServer, kNode, kCoordinator };

// Returns the node of each rank when nodes are filled one after the other.
std::vector<int> NodesInOrder(int ranks, int per_node);

struct Placement {
  int workers = 1;
  int servers = 0;
  bool colocated = false;
  // True: every server has the whole model; false: each has a shard of it.
  bool replicated = false;
  // Holds the node of each worker.  Nodes are numbered in ascending order of their lowest workers.
  // Empty: the strategy has no actors for nodes.
  std::vector<int> node_of = {};
  bool coordinator = false;
  // Every actor has a rank of its own, equal to its number; the rules above do not apply.  Used by
  // replays, since actors on one rank share no vector.
  bool apart = false;

  int nodes() const;
  int actors() const { return workers + servers + nodes() + (coordinator ? 1 : 0); }
  int ranks() const;

  bool IsWorker(ActorId actor) const { return actor < workers; }
  ActorKind KindOf(ActorId actor) const;
  // Returns the actor's number within its kind, from 0.
  int NumberOf(ActorId actor) const;
  ActorId ServerId(int server) const { return workers + server; }
  int ServerOf(ActorId actor) const { return actor - workers; }
  ActorId NodeId(int node) const { return workers + servers + node; }
  ActorId CoordinatorId() const { return workers + servers + nodes(); }

  // Returns the node of each worker: those of the strategy's actors, else blocks of `per_node`.
  std::vector<int> NodesOfWorkers(int per_node) const;
  // Returns the actor of a worker's node, if the strategy has actors for nodes.
  std::optional<ActorId> NodeActorOf(int worker) const;

  Rank RankOf(ActorId actor) const;
  std::vector<ActorId> ActorsOf(Rank rank) const;  // ascending
  std::string NameOf(ActorId actor) const;         // "worker 2", "coordinator"
  std::string RoleOf(Rank rank) const;             // "worker 2", "worker 0, server 0"

  // Returns the node of each rank, where ranks of a node send vectors to each other.  `of_ranks`: the node that each rank
  // is on.  Ranks of a node without a server and without an actor of nodes send none; each gets a negative number of its
  // own.
  std::vector<int> NodesWithMessages(std::vector<int> of_ranks) const;

  // Returns the part of an arena of `size` elements that server `server` has.
  Range ShardOf(int server, int64_t size) const;

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace dtrain
