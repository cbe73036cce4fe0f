#include "framework/comm/sparse_arithmetic.h"

#include <algorithm>
#include <limits>

#include "framework/core/check.h"
#include "framework/core/magnitude.h"

namespace dtrain {
namespace {

constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(float);

}  // namespace

void MergeSum::Begin(SparseEntries a, SparseEntries b, SparseList& to) {
  a_ = a;
  b_ = b;
  to_ = &to;
  next_a_ = next_b_ = 0;
  to.Clear();
  to.Reserve(a.size() + b.size());
}

bool MergeSum::Advance(SparseLink& link) {
  int64_t steps = link.Grant(a_.size() - next_a_ + b_.size() - next_b_, kEntryBytes);
  for (; steps > 0; --steps) {
    const bool has_a = next_a_ < a_.size();
    const bool has_b = next_b_ < b_.size();
    if (!has_a && !has_b) break;
    const int32_t at_a = has_a ? a_.positions[next_a_] : std::numeric_limits<int32_t>::max();
    const int32_t at_b = has_b ? b_.positions[next_b_] : std::numeric_limits<int32_t>::max();
    if (at_a < at_b) {
      to_->Add(at_a, a_.values[next_a_++]);
    } else if (at_b < at_a) {
      to_->Add(at_b, b_.values[next_b_++]);
    } else {
      to_->Add(at_a, a_.values[next_a_++] + b_.values[next_b_++]);
    }
  }
  return next_a_ == a_.size() && next_b_ == b_.size();
}

void LargestCut::Begin(SparseEntries from, int64_t k, SparseList& kept, SparseList& dropped) {
  from_ = from;
  kept_ = &kept;
  dropped_ = &dropped;
  largest_.Begin(k);
  digit_ = 0;
  next_ = 0;
  kept.Clear();
  kept.Reserve(std::min(k, from.size()));
  dropped.Clear();
  dropped.Reserve(std::max<int64_t>(0, from.size() - k));
}

bool LargestCut::Advance(SparseLink& link) {
  while (digit_ < KthLargestSum::kDigits) {
    if (!Look(link)) return false;
    largest_.Next();
    equals_ = largest_.equals();
    next_ = 0;
    ++digit_;
  }
  return Split(link);
}

bool LargestCut::Look(SparseLink& link) {
  const int64_t count = link.Grant(from_.size() - next_, sizeof(float));
  largest_.Count(from_.values.subspan(static_cast<size_t>(next_), static_cast<size_t>(count)));
  next_ += count;
  return next_ == from_.size();
}

bool LargestCut::Split(SparseLink& link) {
  const int64_t end = next_ + link.Grant(from_.size() - next_, kEntryBytes);
  for (; next_ < end; ++next_) {
    const uint32_t bits = Magnitude(from_.values[next_]);
    const bool keeps = bits > largest_.bits() || (bits == largest_.bits() && equals_-- > 0);
    (keeps ? kept_ : dropped_)->Add(from_.positions[next_], from_.values[next_]);
  }
  return next_ == from_.size();
}

void RegionSum::Begin(const std::vector<SparseEntries>& terms, Range region, SparseList& to) {
  terms_ = &terms;
  next_.assign(terms.size(), 0);
  to_ = &to;
  to.Clear();
  for (const SparseEntries& term : terms) {
    DT_CHECK(term.empty() ||
             (term.positions.front() >= region.begin && term.positions.back() < region.end))
        << "entries from " << term.positions.front() << " to " << term.positions.back()
        << " in the region from " << region.begin << " to " << region.end;
  }
  SkipEmpty();
}

// Moves the window to the smallest next position of any term, or to the maximum if there is none.
void RegionSum::SkipEmpty() {
  window_ = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < terms_->size(); ++i) {
    const SparseEntries& term = (*terms_)[i];
    if (next_[i] == term.size()) continue;
    window_ = std::min<int64_t>(window_, term.positions[static_cast<size_t>(next_[i])]);
  }
}

bool RegionSum::Advance(SparseLink& link) {
  while (window_ != std::numeric_limits<int64_t>::max()) {
    if (link.budget <= 0) return false;
    const int64_t added = AddWindow();
    EmptyWindow();
    SkipEmpty();
    link.budget -= added * kEntryBytes + static_cast<int64_t>(touched_.size() * sizeof(uint64_t));
  }
  return true;
}

int64_t RegionSum::AddWindow() {
  int64_t added = 0;
  for (size_t i = 0; i < terms_->size(); ++i) {
    const SparseEntries& term = (*terms_)[i];
    int64_t next = next_[i];
    for (; next < term.size() && term.positions[next] - window_ < kWindow; ++next) {
      const auto at = static_cast<size_t>(term.positions[next] - window_);
      uint64_t& word = touched_[at / 64];
      const uint64_t bit = uint64_t{1} << (at % 64);
      sums_[at] = (word & bit) != 0 ? sums_[at] + term.values[next] : term.values[next];
      word |= bit;
    }
    added += next - next_[i];
    next_[i] = next;
  }
  to_->Reserve(to_->size() + std::min<int64_t>(added, kWindow));
  return added;
}

void RegionSum::EmptyWindow() {
  for (size_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = touched_[word]; bits != 0; bits &= bits - 1) {
      const size_t at = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      to_->Add(static_cast<int32_t>(window_ + static_cast<int64_t>(at)), sums_[at]);
    }
    touched_[word] = 0;
  }
}

void ThresholdCut::Begin(SparseEntries from, uint32_t least, SparseList& kept) {
  from_ = from;
  least_ = least;
  kept_ = &kept;
  next_ = 0;
  kept.Clear();
  kept.Reserve(from.size());
}

bool ThresholdCut::Advance(SparseLink& link) {
  const int64_t end = next_ + link.Grant(from_.size() - next_, kEntryBytes);
  for (; next_ < end; ++next_) {
    const float value = from_.values[next_];
    if (Magnitude(value) >= least_) kept_->Add(from_.positions[next_], value);
  }
  return next_ == from_.size();
}

void Difference::Begin(SparseEntries mine, const std::vector<SparseEntries>& parts,
                       SparseList& to) {
  mine_ = mine;
  parts_ = &parts;
  to_ = &to;
  next_ = 0;
  part_ = 0;
  next_of_part_ = 0;
  to.Clear();
  to.Reserve(mine.size());
}

bool Difference::Advance(SparseLink& link) {
  while (part_ < parts_->size() && next_ < mine_.size()) {
    const SparseEntries& part = (*parts_)[part_];
    const int64_t left = mine_.size() - next_ + part.size() - next_of_part_;
    int64_t steps = link.Grant(left, kEntryBytes);
    if (steps == 0) return false;
    for (; steps > 0 && next_ < mine_.size() && next_of_part_ < part.size(); --steps) {
      const int32_t at = mine_.positions[next_];
      const int32_t taken = part.positions[next_of_part_];
      if (at < taken) to_->Add(at, mine_.values[next_]);
      next_ += at <= taken ? 1 : 0;
      next_of_part_ += at >= taken ? 1 : 0;
    }
    link.budget += steps * kEntryBytes;  // returns the part of the grant that was not used
    if (next_of_part_ < part.size()) continue;
    next_of_part_ = 0;
    ++part_;
  }
  to_->Append(mine_.Part(next_, mine_.size()));
  next_ = mine_.size();
  return true;
}

}  // namespace dtrain
