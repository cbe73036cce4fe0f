// SparseAllGather: every rank gets every rank's entries, for any number of ranks.
//
// It uses Bruck's schedule.  Before a round, this rank has the entries of `have` ranks: its own and
// those of the ranks after it.  It sends them to the rank `have` places before it and receives as
// many from the rank `have` places after it.  So their number doubles, and ceil(log2 P) rounds are
// enough.  A rank receives the others' entries once, which is the minimum of any schedule.  It
// sends as many bytes as a ring, with log P start-ups instead of P - 1, which matters because
// sparse messages are small.  The drawback is that, with several ranks on a node, the NIC receives
// the entries for each of them, while a ring would receive them once.  (Bruck et al., "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 1997,
// section 3: concatenation.)
//
// If sizes are not known, each round's counts are sent just before its entries, which costs no
// additional start-up.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/sparse_messages.h"
#include "framework/comm/sparse_schedule.h"

namespace dtrain {

// Returns the schedule; a block has the entries of one rank, or their count.
SparseSchedule GatherSchedule(int ranks);

// SparseRounds: this rank's turns of the schedule, and the counts of entries.
//
//   for (rounds.Begin(mine); !rounds.complete(); rounds.Next()) {
//     rounds.SwapCounts(messages);
//     // then send given() entries to to(), and receive got() entries from from()
//   }
class SparseRounds {
 public:
  explicit SparseRounds(const SparseLink& link);

  void Begin(SparseCount mine);
  // Begins with known counts, by rank.  SwapCounts is then not needed.
  void BeginKnown(const std::vector<SparseCount>& counts);
  bool complete() const { return next_ == turns_.size(); }

  // The following belong to the current round.
  Rank to() const { return turns_[next_].to; }
  Rank from() const { return turns_[next_].from; }
  void SwapCounts(SparseMessages& messages);
  int64_t given() const { return Sum(0, blocks()); }
  int64_t got() const { return Sum(have_, blocks()); }
  void Next() {
    have_ += blocks();
    ++next_;
  }

  SparseCount Of(Rank rank) const;
  int64_t all() const { return Sum(0, link_->size()); }

 private:
  int blocks() const { return turns_[next_].blocks; }
  int64_t Sum(int first, int count) const;

  const SparseLink* link_;
  std::vector<SparseTurn> turns_;
  std::vector<SparseCount> counts_;  // by distance from this rank
  size_t next_ = 0;                  // the current round
  int have_ = 0;                     // number of ranks whose entries are here
};

class SparseAllGather {
 public:
  explicit SparseAllGather(SparseLink& link);

  // `all` has this rank's entries; the others' are appended to it.
  void Begin(SparseList& all);
  // The same with known counts, by rank.  This rank's count is all.size().
  void BeginKnown(SparseList& all, const std::vector<SparseCount>& counts);
  // Advances as far as possible.  Returns true when all entries have arrived.
  bool Advance();
  // Sets `parts` to the entries in `all`, by rank.  Call it after Advance has returned true.
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
  std::vector<SparseList> outgrown_;  // old memory of `all`, from which entries may still be sent
};

// CountGather: gathers only the counts.
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
