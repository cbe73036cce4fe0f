#include "framework/exchange/sum_letters.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// One worker's values, to worker 0; and the sum, back.
struct PartOfSum {
  static constexpr int kKind = 203;
  std::vector<int64_t> values;  // the bits of doubles
  template <class F>
  void Fields(F&& field) {
    field(values);
  }
};

struct SumOfAll {
  static constexpr int kKind = 204;
  std::vector<int64_t> values;
  template <class F>
  void Fields(F&& field) {
    field(values);
  }
};

std::vector<int64_t> BitsOf(std::span<const double> values) {
  std::vector<int64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<int64_t>(value));
  return bits;
}

}  // namespace

SumLetters::SumLetters(Driver& driver, const Placement& placement, Rank rank,
                       std::function<void()> done)
    : driver_(driver), workers_(placement.workers), rank_(rank), done_(std::move(done)) {}

void SumLetters::Begin(std::span<double> values) {
  values_ = values;
  const std::vector<int64_t> mine = BitsOf(values);
  if (rank_ == 0) return TakePart(0, mine);
  driver_.SendService(0, Pack(PartOfSum{mine}));
}

bool SumLetters::OnLetter(const Letter& letter) {
  if (letter.message.kind == PartOfSum::kKind) {
    TakePart(letter.from_rank, letter.message.words);
  } else if (letter.message.kind == SumOfAll::kKind) {
    End(letter.message.words);
  } else {
    return false;
  }
  return true;
}

// A worker's next part comes when it has the sum of this one.
void SumLetters::TakePart(Rank from, std::span<const int64_t> part) {
  DT_CHECK(!parts_.contains(from)) << "rank " << from << " takes part in a sum twice";
  parts_[from].assign(part.begin(), part.end());
  if (static_cast<int>(parts_.size()) < workers_) return;
  std::vector<double> sum(part.size());
  for (const auto& [rank, values] : parts_) {
    DT_CHECK(values.size() == sum.size())
        << "rank " << rank << " sums " << values.size() << " values, others " << sum.size();
    for (size_t i = 0; i < sum.size(); ++i) {
      const double value = std::bit_cast<double>(values[i]);
      sum[i] = rank == 0 ? value : sum[i] + value;
    }
  }
  parts_.clear();
  const std::vector<int64_t> bits = BitsOf(sum);
  for (int worker = 1; worker < workers_; ++worker) {
    driver_.SendService(worker, Pack(SumOfAll{bits}));
  }
  End(bits);
}

void SumLetters::End(std::span<const int64_t> sum) {
  DT_CHECK(sum.size() == values_.size()) << sum.size() << " sums for " << values_.size();
  for (size_t i = 0; i < sum.size(); ++i) values_[i] = std::bit_cast<double>(sum[i]);
  values_ = {};
  done_();
}

}  // namespace dtrain
