// Split: the parts of a data set; and DataHashes: SHA-256 of what they hold, in hexadecimal digits.
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
  // Each split alone, in the order of Split; the training split with what all samples share (mean, classes, words).
  // "" where it is not known.
  std::array<std::string, 3> splits = {};
  std::string& operator[](Split split) { return splits[static_cast<size_t>(split)]; }
  const std::string& operator[](Split split) const { return splits[static_cast<size_t>(split)]; }
  friend bool operator==(const DataHashes&, const DataHashes&) = default;
};

// Hashes `shared`, which all samples share, and what `add` hands on of each split, in this order; training is the
// first.
DataHashes HashSplits(std::string_view shared, std::span<const Split> order,
                      const std::function<void(Split split, Sha256& hash)>& add);

// The hash of data that are made of those with this hash, in the way that `text` tells; "" stays "".
std::string DerivedHash(const std::string& hash, std::string_view text);

}  // namespace dtrain
