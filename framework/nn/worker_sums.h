// WorkerSums: small sums over all workers in the middle of a step, for layers whose result depends
// on the samples of the others (batch_norm with `sync`).
#pragma once

#include <span>

namespace dtrain {

class WorkerSums {
 public:
  virtual ~WorkerSums() = default;

  // values[i] becomes the sum of every worker's values[i], added in rank order: the same bits on all.
  // Blocks until all have called it.  Every worker makes the same calls in the same order, with as
  // many values; one whose share of the batch is empty takes part with zeros.
  virtual void Sum(std::span<double> values) = 0;
};

}  // namespace dtrain
