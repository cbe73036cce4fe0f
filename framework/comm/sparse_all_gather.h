// SparseAllGather: every rank gets every rank's entries; any number of ranks.
//
// Bruck's schedule: before a round this rank has the entries of itself and the ranks behind it; it
// sends all of them that far back and gets as many from that far ahead, so their number doubles and
// ceil(log2 P) rounds do.  What a rank receives is the others' entries once, as little as any schedule
// may: a ring's bytes, with log P start-ups in place of P - 1, and sparse messages are small.  The
// cost is that, with several ranks on a node, its NIC carries what all of them need, where a ring
// would bring it in once.  (Bruck et al., "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE TPDS 1997, section 3: concatenation.)
//
// Where sizes are not known each round's counts travel just ahead of its entries, at no start-up more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/comm/sparse_messages.h"

namespace dtrain {

// SparseRounds: the schedule, and the counts that it carries.
//
//   for (rounds.Begin(mine); !rounds.complete(); rounds.Next()) {
//     rounds.SwapCounts(messages);
//     // and, what they are the counts of: given() go to to(), then got() come from from()
//   }
class SparseRounds {
 public:
  explicit SparseRounds(const SparseLink& link);

  void Begin(SparseCount mine);
  // Where the counts are known, by rank: SwapCounts is not needed.
  void BeginKnown(const std::vector<SparseCount>& counts);
  bool complete() const { return have_ == link_->size(); }

  // Of this round.
  Rank to() const { return link_->Around(-have_); }
  Rank from() const { return link_->Around(have_); }
  void SwapCounts(SparseMessages& messages);
  int64_t given() const { return Sum(0, blocks()); }
  int64_t got() const { return Sum(have_, blocks()); }
  void Next() { have_ += blocks(); }

  SparseCount Of(Rank rank) const;
  int64_t all() const { return Sum(0, link_->size()); }

 private:
  int blocks() const { return std::min(have_, link_->size() - have_); }
  int64_t Sum(int first, int count) const;

  const SparseLink* link_;
  std::vector<SparseCount> counts_;  // from this rank around
  int have_ = 0;                     // ranks, this one and those behind it
};

class SparseAllGather {
 public:
  explicit SparseAllGather(SparseLink& link);

  // `all` holds this rank's entries and gets the others' behind them.
  void Begin(SparseList& all);
  // The same, where the counts are known, by rank; this rank's is all.size().
  void BeginKnown(SparseList& all, const std::vector<SparseCount>& counts);
  // As far as it can; true when all is there.
  bool Advance();
  // Then: by rank, in `all`.
  void Parts(std::vector<SparseEntries>& parts) const;

 private:
  enum class Stage { kBegin, kCounts, kEntries, kDone };

  void BeginRound();
  void ReceiveEntries();

  SparseLink* link_;
  SparseMessages messages_;
  SparseRounds rounds_;
  SparseList* all_ = nullptr;
  bool known_ = false;
  Stage stage_ = Stage::kDone;
  std::vector<SparseList> outgrown_;  // may still be being sent from
};

// CountGather: the counts alone.
class CountGather {
 public:
  explicit CountGather(SparseLink& link);
  void Begin(SparseCount mine);
  bool Advance();
  SparseCount Of(Rank rank) const { return rounds_.Of(rank); }

 private:
  SparseMessages messages_;
  SparseRounds rounds_;
};

}  // namespace dtrain
