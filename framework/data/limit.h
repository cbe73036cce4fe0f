// The first samples of a data set, for short tries and for seeing a model memorise a few
// (`data.limit`).
#pragma once

#include <memory>

#include "framework/data/dataset.h"

namespace dtrain {

// `source` with at most `limit` samples a split, the first ones.  Everything else is the source's.
std::shared_ptr<const DatasetSource> LimitSource(std::shared_ptr<const DatasetSource> source,
                                                 int64_t limit);

}  // namespace dtrain
