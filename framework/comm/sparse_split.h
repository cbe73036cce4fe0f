// SparseSplit: every rank sends each other rank a part of its entries.
//
// Rank r sends to r+1, r+2, ..., so that no rank is everybody's first, and has a few under way at a
// time.  A part's count travels just ahead of it.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_list.h"
#include "framework/comm/sparse_messages.h"

namespace dtrain {

class SparseSplit {
 public:
  static constexpr int kUnderWay = 4;

  explicit SparseSplit(SparseLink& link);

  // `parts`: what each rank gets of this one's, itself included.  Stays in place until all is done.
  void Begin(const std::vector<SparseEntries>& parts);
  bool Advance();
  // What each rank gave to this one, by rank; until the next Begin.
  const std::vector<SparseEntries>& received() const { return received_; }

 private:
  // One exchange: to one rank, from another.
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
