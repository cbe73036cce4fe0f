// Split names the parts of a data set; DataHashes holds the SHA-256 of their content, in hexadecimal digits.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "framework/core/sha256.h"

namespace dtrain {

enum class Split { kTrain, kValidation, kTest };
inline constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

struct DataHashes {
  std::string all;  // all splits
  // Holds the hash of each split, in the order of Split; that of the training split includes what all samples share
  // (mean, classes, words).  "" if unknown.
  std::array<std::string, 3> splits = {};
  std::string& operator[](Split split) { return splits[static_cast<size_t>(split)]; }
  const std::string& operator[](Split split) const { return splits[static_cast<size_t>(split)]; }
  friend bool operator==(const DataHashes&, const DataHashes&) = default;
};

// Hashes `shared`, data common to all samples, and the data that `add` feeds for each split, in this order; training is
// the first.
DataHashes HashSplits(std::string_view shared, std::span<const Split> order,
                      const std::function<void(Split split, Sha256& hash)>& add);

// Returns the hash of data that `text` describes as derived from data with this hash; "" stays "".
std::string DerivedHash(const std::string& hash, std::string_view text);

}  // namespace dtrain
