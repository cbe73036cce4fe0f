#include "tests/strategies/symbolic_vectors.h"

#include <utility>

namespace dtrain {

SymbolicVectors::SymbolicVectors(std::vector<VectorSpec> specs, std::vector<Range> shards,
                                 const Content& initial)
    : specs_(std::move(specs)), shards_(std::move(shards)), values_(specs_.size()) {
  for (size_t v = 0; v < specs_.size(); ++v) {
    const VectorRole role = specs_[v].role;
    if (role != VectorRole::kWeights && role != VectorRole::kMaster) continue;
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      if (specs_[v].range.Contains(shards_[shard])) values_[v][static_cast<int>(shard)] = initial;
    }
  }
}

Parts SymbolicVectors::Part(VectorId vector, Range range) {
  if (range.empty()) return (*this)[vector];
  Parts part;
  for (const auto& [shard, content] : (*this)[vector]) {
    if (range.Contains(shards_[shard])) part[shard] = content;
  }
  return part;
}

VectorId SymbolicVectors::Find(VectorRole role) const {
  for (size_t v = 0; v < specs_.size(); ++v) {
    if (specs_[v].role == role) return static_cast<VectorId>(v);
  }
  return kNoVector;
}

void SymbolicVectors::Take(VectorId to, VectorId from) {
  Parts parts = from == kArrived ? arrived_ : std::exchange(values_.at(from), {});
  for (auto& [shard, content] : parts) values_.at(to)[shard] = std::move(content);
}

void SymbolicVectors::Add(VectorId to, VectorId from) {
  for (const auto& [shard, content] : (*this)[from]) {
    std::vector<Gradient>& terms = values_.at(to)[shard].terms;
    terms.insert(terms.end(), content.terms.begin(), content.terms.end());
  }
}

}  // namespace dtrain
