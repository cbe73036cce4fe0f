// Placement: which actor lives on which rank, and which part of the arena a server has.
//
// Actors: workers 0..W-1, servers W..W+S-1.  Dedicated: an actor's rank is its number.  Colocated:
// server s lives on the rank of worker s * W / S, so that servers spread over the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/range.h"
#include "framework/strategies/message.h"

namespace dtrain {

struct Placement {
  int workers = 1;
  int servers = 0;
  bool colocated = false;

  int actors() const { return workers + servers; }
  int ranks() const { return colocated ? workers : actors(); }
  bool IsWorker(ActorId actor) const { return actor < workers; }
  ActorId ServerId(int server) const { return workers + server; }
  int ServerOf(ActorId actor) const { return actor - workers; }
  Rank RankOf(ActorId actor) const {
    if (!colocated || actor < workers) return actor;
    return static_cast<Rank>(static_cast<int64_t>(ServerOf(actor)) * workers / servers);
  }
  std::vector<ActorId> ActorsOf(Rank rank) const {
    std::vector<ActorId> actors;
    for (ActorId actor = 0; actor < this->actors(); ++actor) {
      if (RankOf(actor) == rank) actors.push_back(actor);
    }
    return actors;
  }
  std::string RoleOf(Rank rank) const {  // "worker 2", "worker 0, server 0"
    std::string role;
    for (const ActorId actor : ActorsOf(rank)) {
      if (!role.empty()) role += ", ";
      role += IsWorker(actor) ? "worker " + std::to_string(actor)
                              : "server " + std::to_string(ServerOf(actor));
    }
    return role;
  }
  // Server `server`'s part of an arena of `size` elements.
  Range ShardOf(int server, int64_t size) const { return SplitEvenly({0, size}, servers, server); }

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace dtrain
