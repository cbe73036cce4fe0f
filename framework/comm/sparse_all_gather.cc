#include "framework/comm/sparse_all_gather.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace dtrain {

SparseAllGather::SparseAllGather(SparseLink& link)
    : link_(&link), messages_(link), counts_(static_cast<size_t>(link.size())) {}

void SparseAllGather::Begin(SparseList& all) {
  known_ = false;
  Reset(all);
}

void SparseAllGather::BeginKnown(SparseList& all, const std::vector<SparseCount>& counts) {
  known_ = true;
  Reset(all);
  for (int i = 0; i < link_->size(); ++i) {
    counts_[i] = counts[static_cast<size_t>(link_->Around(i))];
  }
  all.Reserve(EntriesOf(0, link_->size()));  // before anything is sent from it
}

void SparseAllGather::Reset(SparseList& all) {
  all_ = &all;
  counts_[0] = static_cast<SparseCount>(all.size());
  have_ = 1;
  stage_ = Stage::kBegin;
}

int SparseAllGather::blocks() const { return std::min(have_, link_->size() - have_); }

int64_t SparseAllGather::EntriesOf(int first, int count) const {
  return std::accumulate(counts_.begin() + first, counts_.begin() + first + count, int64_t{0});
}

bool SparseAllGather::Advance() {
  while (stage_ != Stage::kDone) {
    if (have_ == link_->size()) {
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
      have_ += blocks();
      stage_ = Stage::kBegin;
    }
  }
  return true;
}

void SparseAllGather::BeginRound() {
  const Rank to = link_->Around(-have_);
  const std::span counts(counts_);
  if (!known_) {
    messages_.Send(to, std::span<const SparseCount>(counts.first(blocks())));
    messages_.Receive(link_->Around(have_), counts.subspan(have_, blocks()));
  }
  messages_.SendEntries(to, all_->entries().Part(0, EntriesOf(0, blocks())));
}

// Growing must not wait for what is being sent from the old memory: the rank that receives it may be
// waiting for the same reason.
void SparseAllGather::ReceiveEntries() {
  const int64_t begin = all_->size();
  const int64_t count = EntriesOf(have_, blocks());
  if (begin + count > all_->capacity()) {
    SparseList larger;
    larger.Reserve(std::max(begin + count, 2 * begin));
    larger.Append(all_->entries());
    all_->swap(larger);
    outgrown_.push_back(std::move(larger));
  }
  all_->Resize(begin + count);
  messages_.ReceiveEntries(link_->Around(have_),
                           {all_->positions() + begin, all_->values() + begin, count});
}

void SparseAllGather::Parts(std::vector<SparseEntries>& parts) const {
  parts.resize(counts_.size());
  int64_t begin = 0;
  for (int i = 0; i < link_->size(); ++i) {
    parts[static_cast<size_t>(link_->Around(i))] = all_->entries().Part(begin, begin + counts_[i]);
    begin += counts_[i];
  }
}

CountGather::CountGather(SparseLink& link)
    : link_(&link), messages_(link), counts_(static_cast<size_t>(link.size())) {}

void CountGather::Begin(SparseCount mine) {
  counts_[0] = mine;
  have_ = 1;
  BeginRound();
}

void CountGather::BeginRound() {
  const int blocks = std::min(have_, link_->size() - have_);
  const std::span counts(counts_);
  messages_.Send(link_->Around(-have_), std::span<const SparseCount>(counts.first(blocks)));
  messages_.Receive(link_->Around(have_), counts.subspan(have_, blocks));
}

bool CountGather::Advance() {
  while (messages_.Arrived()) {
    have_ += std::min(have_, link_->size() - have_);
    if (have_ == link_->size()) return messages_.Sent();
    BeginRound();
  }
  return false;
}

SparseCount CountGather::Of(Rank rank) const {
  const int ahead = (rank - link_->rank() + link_->size()) % link_->size();
  return counts_[static_cast<size_t>(ahead)];
}

}  // namespace dtrain
