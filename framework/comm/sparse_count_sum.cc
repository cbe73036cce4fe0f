#include "framework/comm/sparse_count_sum.h"

#include <span>

#include "framework/comm/power_of_two.h"

namespace dtrain {

SparseSchedule CountSumSchedule(int ranks) {
  SparseSchedule schedule;
  const int paired = PowerOfTwoWithin(ranks);
  if (paired < ranks) schedule.emplace_back();
  for (Rank rank = paired; rank < ranks; ++rank) schedule.back().push_back({rank, rank - paired});
  for (int bit = 1; bit < paired; bit *= 2) {
    schedule.emplace_back();
    for (Rank rank = 0; rank < paired; ++rank) schedule.back().push_back({rank, rank ^ bit});
  }
  if (paired < ranks) schedule.emplace_back();
  for (Rank rank = paired; rank < ranks; ++rank) schedule.back().push_back({rank - paired, rank});
  return schedule;
}

CountSum::CountSum(SparseLink& link)
    : messages_(link),
      turns_(TurnsOf(CountSumSchedule(link.size()), link.rank())),
      gets_sums_(link.rank() >= PowerOfTwoWithin(link.size())),
      next_(turns_.size()) {}

void CountSum::Begin(std::vector<int64_t>& numbers) {
  numbers_ = &numbers;
  arriving_.resize(numbers.size());
  next_ = 0;
  if (!turns_.empty()) Post();
}

bool CountSum::Advance() {
  while (next_ < turns_.size() && messages_.Through()) {
    Take();
    if (++next_ < turns_.size()) Post();
  }
  return next_ == turns_.size();
}

void CountSum::Post() {
  const SparseTurn& turn = turns_[next_];
  if (turn.to >= 0) messages_.Send(turn.to, std::span<const int64_t>(*numbers_));
  if (turn.from >= 0) messages_.Receive(turn.from, std::span(arriving_));
}

void CountSum::Take() {
  if (turns_[next_].from < 0) return;
  if (gets_sums_) {
    *numbers_ = arriving_;
    return;
  }
  for (size_t i = 0; i < numbers_->size(); ++i) (*numbers_)[i] += arriving_[i];
}

}  // namespace dtrain
