// SimSparseSums: sparse all-reduce in virtual time, with one event per sum (sparse_cost.h).
//
// A sum begins when every rank has started it and the one before is done, and takes its cost.  All
// ranks are done at the same time.  In a numeric simulation the real collectives of all ranks
// compute the sum, in this thread, over a transport that takes no virtual time, so bits, state and
// traffic are those of real ranks.  For ghosts the result has sizes only, as if no two ranks had
// selected the same position: the size of the sum, and for each rank an equal share of the entries
// that are not in it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "framework/comm/sparse_collective.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/sparse_cost.h"

namespace dtrain {

class SimSparseSums {
 public:
  enum class Kind { kNumbers, kGhosts };

  // `wake(rank)` is called when a sum of that rank is done.  `node_of`: the node of each rank, to
  // count bytes inside nodes in a numeric simulation; empty: they are not counted.
  SimSparseSums(EventQueue& events, SparseCost cost, Kind kind, std::function<void(Rank)> wake,
                const std::vector<int>& node_of = {});

  // Returns the collective of rank `rank`.  SimSparseSums outlives it.
  std::unique_ptr<SparseCollective> Connect(Rank rank);

 private:
  class End;
  struct Waiting {
    int unit = 0;
    int64_t n = 0;
    int64_t k = 0;
    std::vector<SparseEntries> mine;  // by rank
    int started = 0;                  // number of ranks that have started it
  };
  struct Ghost {
    SparseCollective::Sum sum;
    int held = 0;  // number of ranks that have not released it
  };

  int64_t Start(Rank rank, int64_t ticket, const Waiting& sum, SparseEntries mine);
  void BeginIfAllAreThere();
  void Finish();
  void SumNumbers(const Waiting& sum);
  SparseCollective::Sum GhostOf(const Waiting& sum) const;
  SparseLoad LoadOf(const Waiting& sum) const;
  void CountGhost(const SparseLoad& load);
  Ghost& GhostAt(int64_t ticket);
  void ReleaseGhost(int64_t ticket);

  EventQueue& events_;
  SparseCost cost_;
  const int ranks_;
  std::function<void(Rank)> wake_;
  std::map<int, int64_t> calls_;  // number of sums so far, by unit
  std::deque<Waiting> waiting_;   // from ticket done_ on
  int64_t done_ = 0;              // sums that are done
  bool running_ = false;

  // These are for a numeric simulation, by rank; empty for ghosts.  Their tickets equal those of
  // this object.
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<SparseCollective>> real_;

  std::deque<Ghost> ghosts_;           // the last sums, up to ticket done_ - 1
  SparseCost::Moved moved_by_ghosts_;  // by each rank, so far
};

}  // namespace dtrain
