// GsspOptions: the keys of strategy `gssp`.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::gssp {

enum class Inside {
  kSsp,  // stale synchronous, as published
  kBsp,  // synchronous: Grouping-SGD (Jiang et al., CCGRID 2019)
};

enum class Between {
  kGradients,  // as published
  kAveraging,  // servers average their weights
};

constexpr int64_t kBound = 3;                 // default of key `staleness`
constexpr int64_t kStepsBeforeGrouping = 20;  // global batches in which speeds are measured

struct GsspOptions {
  int64_t bound = kBound;  // steps that a worker may lead the slowest one of its group by
  Inside inside = Inside::kSsp;
  Between between = Between::kGradients;
  bool scale_gradient = false;    // scale the gradient by 1/W, as published; else the learning rate
  int64_t exchange_every = 0;     // gradients; 0: as many as the group has workers
  bool measured = true;           // groups follow the workers' speed; else they do not change
  bool equal_size = false;        // groups of equal size
  int64_t groups = 0;             // 0: by the workers' speeds, at most one group per server
  std::vector<int64_t> group_of;  // initial group of each worker; empty: by rank

  // True if workers may be moved to another group than their first.
  bool Regroups(int servers) const { return measured && groups != 1 && servers > 1; }
};

}  // namespace dtrain::gssp
