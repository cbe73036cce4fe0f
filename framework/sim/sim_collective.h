// SimReductions: all-reduce in virtual time, charged as a whole (collective_cost.h).
//
// A reduction begins when every rank has started it and the one before is done - or, where they
// overlap, when every rank has started it - and takes what its plan costs; all ranks are done at the
// same time, one reduction after the other.  Where there are numbers (spans that are not null) it
// computes the canonical sum, or what the collective itself does where sums travel in 16 bits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/sim/collective_cost.h"
#include "framework/sim/event_queue.h"

namespace dtrain {

class SimReductions {
 public:
  // `wake(rank)`: a reduction of that rank is done.  `overlap`: of reductions.
  SimReductions(EventQueue& events, CollectiveCost cost, int ranks, bool overlap,
                std::function<void(Rank)> wake);

  // Sums of 16 bits are wanted as well.  They are made by the real collective of all ranks, over a transport
  // that takes no time: who rounds what, and keeps the rest, goes by its plan.
  void AddRounded(const std::string& collective, CollectiveOptions options);

  // The end of rank `rank`; all live as long as this.
  std::unique_ptr<Collective> Connect(Rank rank);

 private:
  class End;
  struct Reduction {
    std::vector<std::span<float>> parts;  // by rank
    std::vector<Rounding> roundings;      // the same
    int started = 0;
  };

  int64_t Start(Rank rank, int64_t ticket, std::span<float> data, const Rounding& rounding);
  static int64_t FloatsOnTheWay(std::span<float> data, const Rounding& rounding);
  void SumRounded(const Reduction& reduction);
  void BeginThoseThatAreThere();
  void Finish();

  EventQueue& events_;
  CollectiveCost cost_;
  const int ranks_;
  const bool overlap_;
  std::function<void(Rank)> wake_;
  std::vector<Reduction> waiting_;  // from ticket done_ on
  int64_t done_ = 0;                // reductions
  size_t running_ = 0;              // the first so many of waiting_
  Nanos last_end_ = 0;              // of those that have begun

  // Of sums of 16 bits, by rank.
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Collective>> real_;
};

}  // namespace dtrain
