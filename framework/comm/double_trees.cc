#include "framework/comm/double_trees.h"

#include <algorithm>
#include <bit>

#include "framework/comm/collective.h"

namespace dtrain {
namespace {

int FloorLog2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

// Returns the number of rounds from the lowest leaf to the root.
int HeightOf(int world) { return std::bit_width(static_cast<unsigned>(world - 1)); }

// A binary tree, in order, over the `size` places after `base`.  The part left of the top is a full
// tree.
struct Subtree {
  int base;
  int size;

  int height() const { return FloorLog2(size); }  // 0: a leaf
  int top() const { return base + (1 << height()); }
  Subtree Left() const { return {base, top() - base - 1}; }
  Subtree Right() const { return {top(), size - (top() - base)}; }
};

// A place in the tree over the places 0 .. P-1.  Place 0 is the root and has one child; below it
// the places from 1 on are in order, and all odd ones are leaves.
struct TreePlace {
  int parent = -1;
  int parent_height = 0;
  int height = 0;
  int depth = 0;  // 0: the root
  std::vector<int> children = {};
};

TreePlace PlaceIn(int world, int place) {
  TreePlace at{.height = HeightOf(world)};
  Subtree below{0, world - 1};
  if (place == 0) {
    at.children = {below.top()};
    return at;
  }
  for (int above = 0;; below = place < below.top() ? below.Left() : below.Right()) {
    at = {.parent = above,
          .parent_height = at.height,
          .height = below.height(),
          .depth = at.depth + 1};
    above = below.top();
    if (place == above) break;
  }
  for (const Subtree side : {below.Left(), below.Right()}) {
    if (side.size > 0) at.children.push_back(side.top());
  }
  return at;
}

// The second tree is the mirror image of the first one or, for an odd number of ranks, the first
// one shifted by one rank.  Either way its leaves are inner nodes of the first tree.
int PlaceOfRank(int world, bool second, Rank rank) {
  if (!second) return rank;
  return world % 2 == 0 ? world - 1 - rank : (rank + world - 1) % world;
}

Rank RankAt(int world, bool second, int place) {
  if (!second) return place;
  return world % 2 == 0 ? world - 1 - place : (place + 1) % world;
}

// Adds the moves up and down one tree.  The first tree carries block 0, the second one block 1.
void AddTree(CollectiveSchedule& schedule, int world, Rank rank, bool second) {
  const TreePlace at = PlaceIn(world, PlaceOfRank(world, second, rank));
  const int down = HeightOf(world);
  const auto add = [&](int round, MoveKind kind, Rank peer) {
    schedule.moves.push_back({round, kind, peer, second ? 1 : 0});
  };
  std::vector<Rank> children;
  for (const int child : at.children) children.push_back(RankAt(world, second, child));
  std::sort(children.begin(), children.end());
  for (const Rank child : children) {
    add(at.height - 1, MoveKind::kFetch, child);
    add(down + at.depth, MoveKind::kSend, child);
  }
  if (!children.empty()) add(at.height - 1, MoveKind::kSum, rank);
  if (at.parent < 0) return;
  const Rank parent = RankAt(world, second, at.parent);
  add(at.parent_height - 1, MoveKind::kSend, parent);
  add(down + at.depth - 1, MoveKind::kReceive, parent);
}

// There are as many lanes as rounds; more chunks would only wait for one another.
CollectiveRules DoubleTreesRules(int world) {
  constexpr int64_t kTreeChunkBytes = 128 << 10;
  return {.scheduler = DoubleTreesSchedule,
          .chunk_bytes = kTreeChunkBytes,
          .lanes = std::max(4, 2 * HeightOf(world)),
          .pipelined = true};
}

DTRAIN_COLLECTIVE("double_trees", DoubleTreesRules,
                  "two binary trees, half of the vector each; repeats under the same schedule");

}  // namespace

CollectiveSchedule DoubleTreesSchedule(int world, Rank rank, NodeMap /*node_of*/) {
  CollectiveSchedule schedule{.blocks = 2, .moves = {}};
  if (world == 1) return schedule;
  AddTree(schedule, world, rank, false);
  AddTree(schedule, world, rank, true);
  // Both trees run in parallel.  Sums come last in a round, because they wait.
  std::stable_sort(schedule.moves.begin(), schedule.moves.end(), [](const Move& a, const Move& b) {
    return std::pair(a.round, a.kind == MoveKind::kSum) <
           std::pair(b.round, b.kind == MoveKind::kSum);
  });
  return schedule;
}

}  // namespace dtrain
