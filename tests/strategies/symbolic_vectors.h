// Vectors that record their content as symbols instead of numbers.
//
// A weight vector records, for each shard, how many gradients of each worker it contains: 1, 2, ... n, since they must
// be applied once and in order.  A gradient or a sum records its terms in the order of addition.  Compressing keeps the
// terms, which identify the push, and moves a part of the mass: the gradients that are really contained, each as a
// whole.
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
  int64_t clock = 0;  // counts from 1
  friend bool operator==(const Gradient&, const Gradient&) = default;
};

struct Content {
  std::vector<int64_t> applied;  // by worker; for weights
  std::vector<Gradient> terms;   // for gradients
  std::vector<Gradient> mass;    // for gradients; in weights, all applied gradients
};

using Parts = std::map<int, Content>;  // by shard

class SymbolicVectors {
 public:
  // `shards` cover the arena; `initial` is the content of the weights.
  SymbolicVectors(std::vector<VectorSpec> specs, std::vector<Range> shards, const Content& initial);

  Parts& operator[](VectorId vector) { return vector == kArrived ? arrived_ : values_.at(vector); }
  Parts Part(VectorId vector, Range range);  // an empty range: the whole vector
  VectorId Find(VectorRole role) const;
  VectorId Find(const std::string& name) const;

  void Arrive(Parts parts) { arrived_ = std::move(parts); }
  void Take(VectorId to, VectorId from);
  void Add(VectorId to, VectorId from);
  void Clear(VectorId vector) { values_.at(vector).clear(); }
  // Moves the terms, and the part of the mass for which `picks` returns true.
  void Compress(VectorId to, VectorId from, const std::function<bool(const Gradient&)>& picks);

 private:
  std::vector<VectorSpec> specs_;
  std::vector<Range> shards_;
  std::vector<Parts> values_;
  Parts arrived_;
};

}  // namespace dtrain
