// SimReductions: all-reduce in virtual time, priced as a whole (plan_price.h).
//
// A reduction begins when every rank has started it and the one before is done, and takes what its
// plan costs; all ranks are done at the same time.  Where there are numbers (spans that are not
// null) it computes the canonical sum.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/plan_price.h"

namespace dtrain {

class SimReductions {
 public:
  // `wake(rank)`: a reduction of that rank is done.
  SimReductions(EventQueue& events, PlanPrice price, int ranks, std::function<void(Rank)> wake);

  // The end of rank `rank`; all live as long as this.  `inside`: the part of a vector that the rank
  // sends to others of its node.
  std::unique_ptr<Collective> Connect(Rank rank, double inside = 0);

 private:
  class End;
  struct Reduction {
    std::vector<std::span<float>> parts;  // by rank
    int started = 0;
  };

  int64_t Start(Rank rank, int64_t ticket, std::span<float> data);
  void BeginIfAllAreThere();
  void Finish();

  EventQueue& events_;
  PlanPrice price_;
  const int ranks_;
  std::function<void(Rank)> wake_;
  std::vector<Reduction> waiting_;  // from ticket done_ on
  int64_t done_ = 0;                // reductions
  bool running_ = false;
};

}  // namespace dtrain
