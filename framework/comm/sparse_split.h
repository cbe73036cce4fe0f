// SparseSplit: every rank sends each other rank a part of its entries (all-to-all).
//
// Rank r sends to r+1, r+2, ..., so that not all ranks send to the same one first, and has up to
// kUnderWay exchanges in flight.  A part's count is sent just before the part.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_list.h"
#include "framework/comm/sparse_messages.h"

namespace dtrain {

class SparseSplit {
 public:
  static constexpr int kUnderWay = 4;

  // Returns how many exchanges a rank has in flight, if all ranks begin and end them together: the
  // rounds of SparsePhase::exchanges.
  static std::vector<int> Exchanges(int ranks);

  explicit SparseSplit(SparseLink& link);

  // `parts`: the entries for each rank, this one included.  They must not move until all is done.
  void Begin(const std::vector<SparseEntries>& parts);
  bool Advance();
  // Returns the entries from each rank, by rank; valid until the next Begin.
  const std::vector<SparseEntries>& received() const { return received_; }

 private:
  // One exchange: a send to one rank and a receive from another.
  struct Lane {
    explicit Lane(SparseLink& link) : messages(link) {}
    SparseMessages messages;
    int step = 0;  // 0: free
    bool counted = false;
    SparseCount leaving = 0;
    SparseCount arriving = 0;
  };

  void BeginStep(Lane& lane);
  bool AdvanceStep(Lane& lane);

  SparseLink* link_;
  std::vector<Lane> lanes_;
  const std::vector<SparseEntries>* parts_ = nullptr;
  std::vector<SparseEntries> received_;
  SparseShelf shelf_;
  int next_step_ = 1;
  int steps_left_ = 0;
};

}  // namespace dtrain
