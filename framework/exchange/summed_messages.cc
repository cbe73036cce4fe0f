#include "framework/exchange/summed_messages.h"

#include <algorithm>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {

SummedMessages::SummedMessages(Service& service, int workers, Rank rank, std::function<void()> done)
    : service_(service), workers_(workers), rank_(rank), done_(std::move(done)) {
  service.On<control::PartOfSum>(
      [this](const control::PartOfSum& part, Rank from) { TakePart(from, part.values); });
  service.On<control::SumOfAll>([this](const control::SumOfAll& sum, Rank) { End(sum.values); });
}

void SummedMessages::Begin(std::span<double> values) {
  values_ = values;
  control::PartOfSum mine{{values.begin(), values.end()}};
  if (rank_ == 0) return TakePart(0, std::move(mine.values));
  service_.Send(0, mine);
}

// A worker sends the values of its next sum only after it has received this one, so sums do not
// mix.
void SummedMessages::TakePart(Rank from, std::vector<double> part) {
  DT_CHECK(!parts_.contains(from)) << "rank " << from << " takes part in a sum twice";
  parts_[from] = std::move(part);
  if (static_cast<int>(parts_.size()) < workers_) return;
  control::SumOfAll sum{std::move(parts_.at(0))};
  for (Rank rank = 1; rank < workers_; ++rank) {
    const std::vector<double>& values = parts_.at(rank);
    DT_CHECK(values.size() == sum.values.size())
        << "rank " << rank << " sums " << values.size() << " values, others " << sum.values.size();
    for (size_t i = 0; i < values.size(); ++i) sum.values[i] += values[i];
  }
  parts_.clear();
  for (Rank rank = 1; rank < workers_; ++rank) service_.Send(rank, sum);
  End(sum.values);
}

void SummedMessages::End(const std::vector<double>& sum) {
  DT_CHECK(sum.size() == values_.size()) << sum.size() << " sums for " << values_.size();
  std::copy(sum.begin(), sum.end(), values_.begin());
  values_ = {};
  done_();
}

}  // namespace dtrain
