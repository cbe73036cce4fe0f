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
  kAveraging,  // of the weights
};

constexpr int64_t kBound = 3;                 // `staleness`, unless the config says otherwise
constexpr int64_t kStepsBeforeGrouping = 20;  // global batches of the run: speeds are known by then

struct GsspOptions {
  int64_t bound = kBound;  // steps that a worker may lead the slowest one of its group by
  Inside inside = Inside::kSsp;
  Between between = Between::kGradients;
  bool scale_gradient = false;    // the gradient times 1/W, as published; else the learning rate
  int64_t exchange_every = 0;     // gradients; 0: as many as the group has workers
  bool measured = true;           // groups follow the workers' speed; else they stay
  bool equal_size = false;        // groups of equal size
  int64_t groups = 0;             // 0: as many as the speeds ask for, at most one a server
  std::vector<int64_t> group_of;  // by worker, to begin with; empty: by rank

  // Whether workers may come to another group than they begin in.
  bool Regroups(int servers) const { return measured && groups != 1 && servers > 1; }
};

}  // namespace dtrain::gssp
