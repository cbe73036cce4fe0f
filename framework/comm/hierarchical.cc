#include "framework/comm/hierarchical.h"

#include <algorithm>

#include "framework/comm/collective.h"
#include "framework/comm/halving_doubling.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

// Returns the ranks of each node, with nodes in the order of their lowest ranks.
std::vector<std::vector<Rank>> MembersOf(int world, NodeMap node_of) {
  DT_CHECK(node_of.empty() || static_cast<int>(node_of.size()) == world)
      << node_of.size() << " ranks have nodes, of " << world;
  std::vector<int> place(world, -1);  // of each node, its index in `members`
  std::vector<std::vector<Rank>> members;
  for (Rank rank = 0; rank < world; ++rank) {
    const int node = node_of.empty() ? rank : node_of[rank];
    DT_CHECK(node >= 0 && node < world) << "rank " << rank << " on node " << node;
    if (place[node] < 0) {
      place[node] = static_cast<int>(members.size());
      members.emplace_back();
    }
    members[place[node]].push_back(rank);
  }
  return members;
}

// Builds the schedule.  Slice i of a node is summed by its i-th rank.
class Hierarchy {
 public:
  Hierarchy(int world, NodeMap node_of) : nodes_(MembersOf(world, node_of)) {
    for (const std::vector<Rank>& node : nodes_) {
      slices_ = std::min(slices_, static_cast<int>(node.size()));
      if (node.size() > 1) first_between_ = 1;
    }
    blocks_ = HalvingDoublingBlocks(static_cast<int>(nodes_.size()));
  }

  CollectiveSchedule ScheduleOf(Rank rank) {
    FindRank(rank);
    schedule_.blocks = slices_ * blocks_;
    SumInside();
    const auto nodes = static_cast<int>(nodes_.size());
    if (place_ < slices_) {
      std::vector<Rank> owners;
      for (const std::vector<Rank>& node : nodes_) owners.push_back(node[place_]);
      AddHalvingDoubling(schedule_, owners, node_, place_ * blocks_, first_between_);
    }
    GatherInside(first_between_ + HalvingDoublingRounds(nodes));
    return std::move(schedule_);
  }

 private:
  void FindRank(Rank rank) {
    for (node_ = 0;; ++node_) {
      const std::vector<Rank>& node = nodes_[node_];
      const auto found = std::lower_bound(node.begin(), node.end(), rank);
      if (found == node.end() || *found != rank) continue;
      place_ = static_cast<int>(found - node.begin());
      return;
    }
  }

  const std::vector<Rank>& mine() const { return nodes_[node_]; }

  void Add(int round, MoveKind kind, Rank peer, int slice) {
    schedule_.moves.push_back({round, kind, peer, slice * blocks_, blocks_});
  }

  // Calls function(place) for all other ranks of the node, beginning with the one after this rank,
  // so that not all begin with the same rank.
  template <class Function>
  void ForOthers(Function function) {
    const auto size = static_cast<int>(mine().size());
    for (int step = 1; step < size; ++step) function((place_ + step) % size);
  }

  void SumInside() {
    const bool owner = place_ < slices_;
    const Rank self = mine()[place_];
    if (mine().size() == 1) return;
    if (owner) {
      for (const Rank peer : mine()) {
        if (peer != self) Add(0, MoveKind::kFetch, peer, place_);
      }
    }
    ForOthers([&](int place) {
      if (place < slices_) Add(0, MoveKind::kSend, mine()[place], place);
    });
    if (owner) Add(0, MoveKind::kSum, self, place_);
  }

  void GatherInside(int round) {
    if (place_ < slices_) {
      ForOthers([&](int place) { Add(round, MoveKind::kSend, mine()[place], place_); });
    }
    ForOthers([&](int place) {
      if (place < slices_) Add(round, MoveKind::kReceive, mine()[place], place);
    });
  }

  const std::vector<std::vector<Rank>> nodes_;
  int slices_ = 1 << 30;
  int blocks_ = 1;         // blocks of a slice
  int first_between_ = 0;  // the first round between nodes
  int node_ = 0;           // the rank's node
  int place_ = 0;          // the rank's index in its node
  CollectiveSchedule schedule_;
};

CollectiveRules HierarchicalRules(int /*world*/) {
  return {.scheduler = HierarchicalSchedule, .by_nodes = true};
}

DTRAIN_COLLECTIVE("hierarchical", HierarchicalRules,
                  "sums inside each node, then between nodes; repeats under the same schedule");

}  // namespace

CollectiveSchedule HierarchicalSchedule(int world, Rank rank, NodeMap node_of) {
  return Hierarchy(world, node_of).ScheduleOf(rank);
}

}  // namespace dtrain
