// Placement: which actor lives on which rank, and which part of the arena a server has.
//
// Actors are numbered kind by kind: workers 0..W-1, servers, one actor for each node, a
// coordinator.  A strategy that has no actors of a kind leaves that kind empty; those here have
// workers and servers only.
//
//   worker w       rank w
//   server s       dedicated: rank W + s; colocated: the rank of worker s * W / S, so that servers
//                  spread over the nodes
//   node n         the rank of its lowest worker
//   coordinator    the rank of server 0, or of worker 0 where there are no servers
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/layout.h"
#include "framework/strategies/message.h"

namespace dtrain {

enum class ActorKind { kWorker, kServer, kNode, kCoordinator };

struct Placement {
  int workers = 1;
  int servers = 0;
  bool colocated = false;
  // Every server has the whole model; else each has a shard of it.
  bool replicated = false;
  // The node of each worker.  Nodes are numbered by their lowest workers, in ascending order.
  // Empty: the strategy has no actors for nodes.
  std::vector<int> node_of = {};
  bool coordinator = false;
  // Every actor has a rank of its own, that of its number, whatever is said above (replay: those
  // that shared a rank shared no vector).
  bool apart = false;

  int nodes() const;
  int actors() const { return workers + servers + nodes() + (coordinator ? 1 : 0); }
  int ranks() const;

  bool IsWorker(ActorId actor) const { return actor < workers; }
  ActorKind KindOf(ActorId actor) const;
  // Within its kind, from 0.
  int NumberOf(ActorId actor) const;
  ActorId ServerId(int server) const { return workers + server; }
  int ServerOf(ActorId actor) const { return actor - workers; }
  ActorId NodeId(int node) const { return workers + servers + node; }
  ActorId CoordinatorId() const { return workers + servers + nodes(); }

  Rank RankOf(ActorId actor) const;
  std::vector<ActorId> ActorsOf(Rank rank) const;  // ascending
  std::string NameOf(ActorId actor) const;         // "worker 2", "coordinator"
  std::string RoleOf(Rank rank) const;             // "worker 2", "worker 0, server 0"

  // What server `server` has of an arena of `size` elements.
  Range ShardOf(int server, int64_t size) const;

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace dtrain
