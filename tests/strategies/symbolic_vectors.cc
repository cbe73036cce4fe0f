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

VectorId SymbolicVectors::Find(const std::string& name) const {
  for (size_t v = 0; v < specs_.size(); ++v) {
    if (specs_[v].name == name) return static_cast<VectorId>(v);
  }
  return kNoVector;
}

void SymbolicVectors::Take(VectorId to, VectorId from) {
  Parts parts = from == kArrived ? arrived_ : std::exchange(values_.at(from), {});
  for (auto& [shard, content] : parts) values_.at(to)[shard] = std::move(content);
}

void SymbolicVectors::Add(VectorId to, VectorId from) {
  for (const auto& [shard, content] : (*this)[from]) {
    Content& sum = values_.at(to)[shard];
    sum.terms.insert(sum.terms.end(), content.terms.begin(), content.terms.end());
    sum.mass.insert(sum.mass.end(), content.mass.begin(), content.mass.end());
  }
}

void SymbolicVectors::Compress(VectorId to, VectorId from,
                               const std::function<bool(const Gradient&)>& picks) {
  Clear(to);
  for (auto& [shard, content] : values_.at(from)) {
    Content& out = values_.at(to)[shard];
    out.terms = std::exchange(content.terms, {});
    std::vector<Gradient> kept;
    for (const Gradient& gradient : content.mass) {
      (picks(gradient) ? out.mass : kept).push_back(gradient);
    }
    content.mass = std::move(kept);
  }
}

}  // namespace dtrain
