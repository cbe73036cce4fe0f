// SimSparseSums: sums of sparse selections in virtual time, charged as a whole (sparse_cost.h).
//
// A sum begins when every rank has started it and the one before is done, and takes what it costs; all
// ranks are done at the same time.  Numbers are summed by the real collectives of all ranks, in this
// thread, over a transport that takes no time: bits, state and traffic are those of real ranks.  Ghosts
// are answered with sizes, as if no two ranks had selected the same place: what is in the sum, and for
// each rank an equal share of what is not.
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

  // `wake(rank)`: a sum of that rank is done.  `node_of`: of each rank, for the bytes inside nodes of
  // numbers; empty where nobody counts them.
  SimSparseSums(EventQueue& events, SparseCost cost, Kind kind, std::function<void(Rank)> wake,
                const std::vector<int>& node_of = {});

  // The end of rank `rank`; all live as long as this.
  std::unique_ptr<SparseCollective> Connect(Rank rank);

 private:
  class End;
  struct Waiting {
    int unit = 0;
    int64_t n = 0;
    int64_t k = 0;
    std::vector<SparseEntries> mine;  // by rank
    int started = 0;
  };
  struct Ghost {
    SparseCollective::Sum sum;
    int held = 0;  // by ranks that have not released it
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
  std::map<int, int64_t> calls_;  // of each unit
  std::deque<Waiting> waiting_;   // from ticket done_ on
  int64_t done_ = 0;              // sums
  bool running_ = false;

  // Of numbers, by rank; none for ghosts.  Their tickets are ours.
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<SparseCollective>> real_;

  std::deque<Ghost> ghosts_;           // from ticket done_ - its size on
  SparseCost::Moved moved_by_ghosts_;  // a rank's
};

}  // namespace dtrain
