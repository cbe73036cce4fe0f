// SimReductions: all-reduce in virtual time, with one event per reduction (collective_cost.h).
//
// A reduction begins when every rank has started it and the one before is done (with `overlap`:
// when every rank has started it).  It takes the time that its schedule costs.  All ranks are done
// at the same time, one reduction after the other.  In a numeric simulation (spans that are not
// null) it computes the canonical sum or, if sums are sent in 16 bits, the result of the real
// collective.
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
  // `wake(rank)` is called when a reduction of that rank is done.  `overlap`: reductions may
  // overlap.
  SimReductions(EventQueue& events, CollectiveCost cost, int ranks, bool overlap,
                std::function<void(Rank)> wake);

  // Prepares sums in 16 bits.  They are computed by the real collectives of all ranks, over a
  // transport that takes no virtual time, since the schedule determines which rank rounds a value
  // and keeps its error.
  void AddRounded(const std::string& collective, CollectiveOptions options);

  // Returns the collective of rank `rank`.  SimReductions outlives it.
  std::unique_ptr<Collective> Connect(Rank rank);

 private:
  class End;
  struct Reduction {
    std::vector<std::span<float>> parts;  // by rank
    std::vector<Rounding> roundings;      // by rank
    int started = 0;                      // number of ranks that have started it
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
  int64_t done_ = 0;                // reductions that are done
  size_t running_ = 0;              // the first `running_` of waiting_ have begun
  Nanos last_end_ = 0;              // end of the last one that has begun

  // These are for sums in 16 bits, by rank.
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Collective>> real_;
};

}  // namespace dtrain
