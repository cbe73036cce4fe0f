#include "framework/comm/sparse_all_gather.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace dtrain {

SparseSchedule GatherSchedule(int ranks) {
  SparseSchedule schedule;
  for (int have = 1; have < ranks; have *= 2) {
    const int blocks = std::min(have, ranks - have);
    schedule.emplace_back();
    for (Rank rank = 0; rank < ranks; ++rank) {
      schedule.back().push_back({(rank + have) % ranks, rank, blocks});
    }
  }
  return schedule;
}

SparseRounds::SparseRounds(const SparseLink& link)
    : link_(&link),
      turns_(TurnsOf(GatherSchedule(link.size()), link.rank())),
      counts_(static_cast<size_t>(link.size())) {}

void SparseRounds::Begin(SparseCount mine) {
  counts_[0] = mine;
  next_ = 0;
  have_ = 1;
}

void SparseRounds::BeginKnown(const std::vector<SparseCount>& counts) {
  for (int i = 0; i < link_->size(); ++i) {
    counts_[i] = counts[static_cast<size_t>(link_->Around(i))];
  }
  next_ = 0;
  have_ = 1;
}

void SparseRounds::SwapCounts(SparseMessages& messages) {
  const std::span counts(counts_);
  messages.Send(to(), std::span<const SparseCount>(counts.first(blocks())));
  messages.Receive(from(), counts.subspan(have_, blocks()));
}

int64_t SparseRounds::Sum(int first, int count) const {
  return std::accumulate(counts_.begin() + first, counts_.begin() + first + count, int64_t{0});
}

SparseCount SparseRounds::Of(Rank rank) const {
  const int ahead = (rank - link_->rank() + link_->size()) % link_->size();
  return counts_[static_cast<size_t>(ahead)];
}

SparseAllGather::SparseAllGather(SparseLink& link) : link_(&link), messages_(link), rounds_(link) {}

void SparseAllGather::Begin(SparseList& all) {
  rounds_.Begin(static_cast<SparseCount>(all.size()));
  all_ = &all;
  known_ = false;
  stage_ = Stage::kBegin;
}

void SparseAllGather::BeginKnown(SparseList& all, const std::vector<SparseCount>& counts) {
  rounds_.BeginKnown(counts);
  all_ = &all;
  known_ = true;
  stage_ = Stage::kBegin;
  all.Reserve(rounds_.all());  // the memory must not move once entries are being sent
}

bool SparseAllGather::Advance() {
  while (stage_ != Stage::kDone) {
    if (rounds_.complete()) {
      if (!messages_.Sent()) return false;
      outgrown_.clear();
      stage_ = Stage::kDone;
    } else if (stage_ == Stage::kBegin) {
      BeginRound();
      stage_ = Stage::kCounts;
    } else if (!messages_.Arrived()) {
      return false;
    } else if (stage_ == Stage::kCounts) {
      ReceiveEntries();
      stage_ = Stage::kEntries;
    } else {
      rounds_.Next();
      stage_ = Stage::kBegin;
    }
  }
  return true;
}

void SparseAllGather::BeginRound() {
  if (!known_) rounds_.SwapCounts(messages_);
  messages_.SendEntries(rounds_.to(), all_->entries().Part(0, rounds_.given()));
}

// The list must not wait for sends from its old memory before it grows, since the receiving rank
// may be waiting for the same reason.  So the old memory is kept.
void SparseAllGather::ReceiveEntries() {
  const int64_t begin = all_->size();
  const int64_t count = rounds_.got();
  if (begin + count > all_->capacity()) {
    SparseList larger;
    larger.Reserve(std::max(begin + count, 2 * begin));
    larger.Append(all_->entries());
    all_->swap(larger);
    outgrown_.push_back(std::move(larger));
  }
  all_->Resize(begin + count);
  messages_.ReceiveEntries(rounds_.from(),
                           {all_->positions() + begin, all_->values() + begin, count});
}

void SparseAllGather::Parts(std::vector<SparseEntries>& parts) const {
  parts.resize(static_cast<size_t>(link_->size()));
  int64_t begin = 0;
  for (int i = 0; i < link_->size(); ++i) {
    const Rank rank = link_->Around(i);
    const int64_t end = begin + rounds_.Of(rank);
    parts[static_cast<size_t>(rank)] = all_->entries().Part(begin, end);
    begin = end;
  }
}

CountGather::CountGather(SparseLink& link) : messages_(link), rounds_(link) {}

void CountGather::Begin(SparseCount mine) {
  rounds_.Begin(mine);
  if (!rounds_.complete()) rounds_.SwapCounts(messages_);
}

bool CountGather::Advance() {
  while (messages_.Arrived()) {
    if (!rounds_.complete()) rounds_.Next();
    if (rounds_.complete()) return messages_.Sent();
    rounds_.SwapCounts(messages_);
  }
  return false;
}

}  // namespace dtrain
