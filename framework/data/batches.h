// What the batches of a run hold, as functions that fill the k-th one (k = 0, 1, 2, ...).
//
// A filler is called with rising k by one thread at a time and answers false, leaving the batch
// alone, when there are no more.  It allocates nothing after its first call.  The data set must
// outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "framework/core/layout.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"

namespace dtrain {

using BatchFiller = std::function<bool(uint64_t k, Batch& batch)>;

// Worker `worker`'s shares of the steps [first_step, last_step).  A share may be empty (samples ==
// 0).
BatchFiller TrainingBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                            uint64_t first_step, uint64_t last_step);

// Worker `worker`'s own mini-batches of an asynchronous run, from its `first` on, without end.
BatchFiller OwnBatches(const Dataset& dataset, const Sampler& sampler, int worker, int workers,
                       uint64_t first);

// The given blocks of a split in index order, never augmented.
BatchFiller EvaluationBatches(const Dataset& dataset, Split split, std::vector<Range> blocks);

}  // namespace dtrain
