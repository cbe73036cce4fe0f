// BlobPools: a BlobPool for each size that is asked for.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "framework/device/blob.h"

namespace dtrain {

class BlobPools {
 public:
  Blob CopyOf(std::span<const float> values) {
    Blob blob = New(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), blob.MutableF32());
    return blob;
  }
  Blob New(int64_t elements) {
    std::unique_ptr<BlobPool>& pool = pools_[elements];
    if (pool == nullptr) pool = std::make_unique<BlobPool>(elements, DType::kF32);
    return pool->New();
  }

 private:
  std::map<int64_t, std::unique_ptr<BlobPool>> pools_;
};

}  // namespace dtrain
