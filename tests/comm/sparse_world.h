// Sparse collectives of all ranks in one thread, with an order of progress drawn from a seed: it runs thousands of
// cases a second, and the test sees all ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/local/local_world.h"
#include "framework/comm/sparse_collective.h"
#include "tests/support/seeds.h"

namespace dtrain {

// Entries that own their memory.
struct Selected {
  std::vector<int32_t> positions;
  std::vector<float> values;

  static Selected Of(SparseEntries entries) {
    return {{entries.positions.begin(), entries.positions.end()},
            {entries.values.begin(), entries.values.end()}};
  }
  SparseEntries entries() const { return {positions, values}; }
  void Add(int32_t position, float value) {
    positions.push_back(position);
    values.push_back(value);
  }
  friend bool operator==(const Selected& a, const Selected& b) {
    return a.positions == b.positions && a.values.size() == b.values.size() &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), [](float x, float y) {
             return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
           });
  }
};

// The parts of a sum on one rank.
struct Summed {
  std::vector<Selected> parts;
  Selected returned;

  static Summed Of(const SparseCollective::Sum& sum) {
    Summed summed;
    for (const SparseEntries& part : sum.parts) summed.parts.push_back(Selected::Of(part));
    summed.returned = Selected::Of(sum.returned);
    return summed;
  }
  // Joins all parts.
  Selected Joined() const {
    Selected all;
    for (const Selected& part : parts) {
      for (size_t i = 0; i < part.positions.size(); ++i) all.Add(part.positions[i], part.values[i]);
    }
    return all;
  }
  friend bool operator==(const Summed&, const Summed&) = default;
};

class SparseWorld {
 public:
  SparseWorld(const std::string& name, int ranks, uint64_t seed = 1,
              const CollectiveOptions& options = {})
      : world_(ranks), draws_(seed) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      transports_.push_back(world_.Connect(rank));
      collectives_.push_back(MakeSparseCollective(name, *transports_.back(), options));
    }
  }

  int size() const { return world_.size(); }
  SparseCollective& at(Rank rank) { return *collectives_[static_cast<size_t>(rank)]; }

  void Start(int unit, int64_t n, int64_t k, const std::vector<Selected>& mine) {
    for (Rank rank = 0; rank < size(); ++rank) {
      at(rank).Start(unit, n, k, mine[static_cast<size_t>(rank)].entries());
    }
    ++tickets_;
  }

  // The ranks progress in random order, some far ahead of others.
  void Finish() {
    for (int idle = 0; idle < 1000;) {
      bool done = true;
      for (const auto& collective : collectives_) done &= collective->Idle();
      if (done) return;
      idle = at(static_cast<Rank>(draws_.Below(size()))).Progress() ? 0 : idle + 1;
    }
    FAIL() << "nothing moves";
  }

  // Returns the sum of one selection per rank, by rank.
  std::vector<Summed> Sum(int unit, int64_t n, int64_t k, const std::vector<Selected>& mine) {
    Start(unit, n, k, mine);
    Finish();
    std::vector<Summed> sums;
    for (Rank rank = 0; rank < size(); ++rank) {
      sums.push_back(Summed::Of(at(rank).Of(tickets_ - 1)));
      at(rank).Release(tickets_ - 1);
    }
    return sums;
  }

 private:
  LocalWorld world_;
  Draws draws_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<SparseCollective>> collectives_;
  int64_t tickets_ = 0;
};

}  // namespace dtrain
