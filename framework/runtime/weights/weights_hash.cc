#include "framework/runtime/weights/weights_hash.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "framework/core/sha256.h"

namespace dtrain {
namespace {

static_assert(std::endian::native == std::endian::little, "the hash is over little-endian floats");

struct Piece {
  std::string_view name;
  const float* values;
  int64_t count;
};

void Collect(const ArenaLayout& layout, const float* arena, std::vector<Piece>& pieces) {
  for (const ArenaEntry& entry : layout.entries) {
    pieces.push_back({entry.name, arena + entry.range.begin, entry.range.size()});
  }
}

}  // namespace

std::string WeightsSha256(const ModelLayout& layout, const float* weights, const float* state) {
  std::vector<Piece> pieces;
  Collect(layout.parameters, weights, pieces);
  Collect(layout.state, state, pieces);
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.name < b.name; });
  Sha256 hash;
  for (const Piece& piece : pieces) hash.Update(piece.values, piece.count * sizeof(float));
  return hash.HexDigest();
}

}  // namespace dtrain
