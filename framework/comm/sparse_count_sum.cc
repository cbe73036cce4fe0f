#include "framework/comm/sparse_count_sum.h"

#include <span>

#include "framework/comm/power_of_two.h"

namespace dtrain {

CountSum::CountSum(SparseLink& link) : messages_(link) {
  const int paired = PowerOfTwoWithin(link.size());
  const Rank rank = link.rank();
  if (rank >= paired) {
    rounds_.push_back({rank - paired, true, Arriving::kNothing});
    rounds_.push_back({rank - paired, false, Arriving::kSums});
  } else {
    const bool folds = rank + paired < link.size();
    if (folds) rounds_.push_back({rank + paired, false, Arriving::kTerms});
    for (int bit = 1; bit < paired; bit *= 2) {
      rounds_.push_back({rank ^ bit, true, Arriving::kTerms});
    }
    if (folds) rounds_.push_back({rank + paired, true, Arriving::kNothing});
  }
  next_ = rounds_.size();
}

void CountSum::Begin(std::vector<int64_t>& numbers) {
  numbers_ = &numbers;
  arriving_.resize(numbers.size());
  next_ = 0;
  if (!rounds_.empty()) Post();
}

bool CountSum::Advance() {
  while (next_ < rounds_.size() && messages_.Through()) {
    Take();
    if (++next_ < rounds_.size()) Post();
  }
  return next_ == rounds_.size();
}

void CountSum::Post() {
  const Round& round = rounds_[next_];
  if (round.sends) messages_.Send(round.peer, std::span<const int64_t>(*numbers_));
  if (round.arriving != Arriving::kNothing) messages_.Receive(round.peer, std::span(arriving_));
}

void CountSum::Take() {
  const Arriving arriving = rounds_[next_].arriving;
  if (arriving == Arriving::kSums) *numbers_ = arriving_;
  if (arriving != Arriving::kTerms) return;
  for (size_t i = 0; i < numbers_->size(); ++i) (*numbers_)[i] += arriving_[i];
}

}  // namespace dtrain
