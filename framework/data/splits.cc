#include "framework/data/splits.h"

#include "framework/core/check.h"

namespace dtrain {

DataHashes HashSplits(std::string_view shared, std::span<const Split> order,
                      const std::function<void(Split split, Sha256& hash)>& add) {
  DT_CHECK(!order.empty() && order.front() == Split::kTrain);
  DataHashes hashes;
  Sha256 all;
  all.Update(shared);
  for (const Split split : order) {
    add(split, all);
    if (split == Split::kTrain) {
      hashes[split] = all.DigestSoFar();
      continue;
    }
    Sha256 alone;
    add(split, alone);
    hashes[split] = alone.HexDigest();
  }
  hashes.all = all.HexDigest();
  return hashes;
}

std::string DerivedHash(const std::string& hash, std::string_view text) {
  return hash.empty() ? "" : Sha256::Of(hash + std::string(text));
}

}  // namespace dtrain
