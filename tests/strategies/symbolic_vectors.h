// Vectors without numbers: what is in them is remembered instead.
//
// A weight vector knows, for each shard, how many gradients of each worker it contains: 1, 2, ...
// n, since they must be applied in order and once.  A gradient or a sum knows its terms, in the
// order in which they were added; compressing leaves it the terms that say which push it is, and
// moves some of its mass: the gradients that are really in it, each as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"

namespace dtrain {

struct Gradient {
  int worker = 0;
  int64_t clock = 0;  // the worker's first is 1
  friend bool operator==(const Gradient&, const Gradient&) = default;
};

struct Content {
  std::vector<int64_t> applied;  // by worker; weights
  std::vector<Gradient> terms;   // gradients
  std::vector<Gradient> mass;    // gradients; in weights, all that was applied
};

using Parts = std::map<int, Content>;  // by shard

class SymbolicVectors {
 public:
  // `shards` cover the arena; `initial` is the content of weights.
  SymbolicVectors(std::vector<VectorSpec> specs, std::vector<Range> shards, const Content& initial);

  Parts& operator[](VectorId vector) { return vector == kArrived ? arrived_ : values_.at(vector); }
  Parts Part(VectorId vector, Range range);  // empty range: all
  VectorId Find(VectorRole role) const;
  VectorId Find(const std::string& name) const;

  void Arrive(Parts parts) { arrived_ = std::move(parts); }
  void Take(VectorId to, VectorId from);
  void Add(VectorId to, VectorId from);
  void Clear(VectorId vector) { values_.at(vector).clear(); }
  // Moves the terms, and of the mass what `picks` says yes to.
  void Compress(VectorId to, VectorId from, const std::function<bool(const Gradient&)>& picks);

 private:
  std::vector<VectorSpec> specs_;
  std::vector<Range> shards_;
  std::vector<Parts> values_;
  Parts arrived_;
};

}  // namespace dtrain
