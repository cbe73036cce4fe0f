// BlobPools: a BlobPool for each size that is asked for.
#pragma once

#include <map>
#include <memory>

#include "framework/device/blob.h"

namespace dtrain {

class BlobPools {
 public:
  Blob New(int64_t elements) {
    std::unique_ptr<BlobPool>& pool = pools_[elements];
    if (pool == nullptr) pool = std::make_unique<BlobPool>(elements, DType::kF32);
    return pool->New();
  }

 private:
  std::map<int64_t, std::unique_ptr<BlobPool>> pools_;
};

}  // namespace dtrain
